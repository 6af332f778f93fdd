// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/score_report.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "scoring/by_claim.h"
#include "scoring/devices/device_picker.h"
#include "scoring/engine/behind.h"

namespace berth {
namespace {

// The choice that became the placement.
DeviceChoice ChoiceOf(const Node& node, const Placement& placement) {
  DeviceChoice choice{.gpus = GpusAmong(placement.grants, node.gpus().size())};
  for (const DeviceGrant& grant : placement.grants) {
    choice.milli = grant.milli;
    choice.memory_mib = grant.memory_mib;
  }
  return choice;
}

std::vector<ScorePart> PartsOf(const Profile& profile, const Node& node, const RequestShape& shape,
                               const Placement& placement) {
  const DeviceChoice choice = ChoiceOf(node, placement);
  std::vector<ScorePart> parts;
  for (const Profile::Weighted& weighted : profile.scorers) {
    if (!weighted.scorer->Applies(shape)) continue;
    int score = 0;
    weighted.scorer->Score(node, shape, std::span(&choice, 1), std::span(&score, 1));
    parts.push_back({weighted.name, weighted.weight, score});
  }
  return parts;
}

}  // namespace

std::vector<ScoredNode> ReportScores(Engine& engine, const std::shared_ptr<const Snapshot>& real,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> fitting,
                                     std::size_t most, NodeIndex always) {
  if (fitting.empty()) return {};
  const RequestShape& shape = pod.shape;
  PlanTable table = engine.TableFor(real, shape);
  table.Follow(snapshot);
  const std::vector<std::int64_t> ranks = table.Ranks(fitting);
  std::vector<std::size_t> order(fitting.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return ranks[i]; });
  const std::shared_ptr<const Profile> profile = engine.profile(shape);
  std::vector<ScoredNode> report;
  std::size_t place = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_alone = i == 1 && GivesByClaim(snapshot->node(fitting[order[0]]), pod);
    if (is_alone || (i > 0 && ranks[order[i]] != ranks[order[i - 1]])) place = i + 1;
    const NodeIndex node = fitting[order[i]];
    if (i >= most && node != always) continue;
    ScoredNode scored{
        node, place, table.PlaceOn(node), {}, BehindOn(snapshot->node(node), shape).text()};
    scored.parts = PartsOf(*profile, snapshot->node(node), shape, scored.placement);
    report.push_back(std::move(scored));
  }
  return report;
}

}  // namespace berth
