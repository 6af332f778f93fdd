// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/model_summary.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include "scoring/devices/device_picker.h"
#include "scoring/explain/gpu_cells.h"
#include "scoring/groups/pod_room.h"

namespace berth {
namespace {

void AddDriver(ModelSummary& summary, const NodeSpec& spec) {
  const std::optional<Version> driver = VersionOf(spec.labels, Versioned::kDriver);
  if (!driver) return;
  auto& drivers = summary.drivers;
  const auto at =
      std::ranges::lower_bound(drivers, *driver, std::greater<>(), &std::pair<Version, int>::first);
  if (at != drivers.end() && at->first == *driver) {
    ++at->second;
  } else {
    drivers.insert(at, {*driver, 1});
  }
}

void AddTo(ModelSummary& summary, const Node& node) {
  const NodeSpec& spec = node.spec();
  AddDriver(summary, spec);
  const auto gpus = static_cast<int>(std::ssize(spec.gpus));
  ++summary.nodes;
  summary.gpus += gpus;
  const bool is_broken = !spec.gpu_condition.empty() || spec.refuses_gpu_pods;
  summary.out_of_order += is_broken ? gpus : gpus - node.healthy_gpus();
  if (!is_broken && !TakesPods(spec)) summary.closed += node.healthy_gpus();
  for (const GpuFree& free : node.gpus()) {
    summary.allocated_milli += kMilliPerGpu - std::clamp(free.milli, 0, kMilliPerGpu);
  }
  summary.places += spec.places.count;
  summary.shared_gpus += spec.places.gpus;
  if (spec.mig.known()) summary.mig_gpus += static_cast<int>(std::ssize(spec.mig->gpus));
  if (!TakesPods(spec)) return;
  summary.free_places += std::max(node.free_places(), 0);
  const int idle = std::popcount(IdleGpus(node));
  summary.idle += idle;
  if (idle > summary.largest_hole) {
    summary.largest_hole = idle;
    summary.hole_node = spec.name;
  }
  for (std::size_t i = 0; i < ModelSummary::kSizes.size(); ++i) {
    RequestShape shape;
    shape.gpus = WholeGpus{ModelSummary::kSizes[i]};
    summary.fit[i] += PodsThatFit(node, shape);
  }
}

}  // namespace

std::vector<ModelSummary> SummarizeModels(const Snapshot& snapshot) {
  std::map<std::string_view, ModelSummary> by_model;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (!spec.has_gpus()) continue;
    AddTo(by_model[spec.gpu_model], snapshot.node(i));
  }
  std::vector<ModelSummary> summaries;
  for (auto& [model, summary] : by_model) {
    summary.model = model;
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace berth
