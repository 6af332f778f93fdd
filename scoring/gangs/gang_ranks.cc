// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_ranks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "cluster/values/node_constraints.h"
#include "scoring/devices/device_picker.h"
#include "scoring/groups/group_domains.h"
#include "topology/links/wiring.h"

namespace berth {
namespace {

constexpr std::array<std::string_view, 2> kIndexLabels = {
    "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"};
constexpr std::string_view kDigits = "0123456789";

int NumberIn(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

using Places = std::vector<GangPlan::Place*>;

bool TakesWhole(const GangAsk& ask, const GangPlan::Place& place) {
  const RequestShape& shape = ask.members[place.member].pod.shape;
  return std::holds_alternative<WholeGpus>(shape.gpus) && !place.placement.grants.empty();
}

GpuMask WholeOn(const GangAsk& ask, const Places& places) {
  GpuMask mask = 0;
  for (const GangPlan::Place* place : places) {
    if (!TakesWhole(ask, *place)) continue;
    mask |= GpusAmong(place->placement.grants, kMaxGpusPerNode);
  }
  return mask;
}

// What members that are there already have.
GpuMask RailsOfPresent(const Snapshot& snapshot, const GangAsk& ask) {
  GpuMask rails = 0;
  if (ask.members.empty() || ask.members.front().pod.gang.empty()) return rails;
  for (const NodeIndex node : ask.present.nodes) {
    const Node& there = snapshot.node(node);
    for (const auto& record : there.pods()) {
      if (record->pod.gang.id != ask.members.front().pod.gang.id) continue;
      rails |= GpusAmong(record->placement.grants, there.gpus().size());
    }
  }
  return rails;
}

// That are free on most of the nodes from which most are taken.
GpuMask RailsOfPlan(const Snapshot& snapshot, const GangAsk& ask,
                    const std::map<NodeIndex, Places>& by_node) {
  std::map<int, std::vector<GpuMask>> idle_by_count;
  for (const auto& [node, places] : by_node) {
    const int taken = std::popcount(WholeOn(ask, places));
    if (taken > 0) idle_by_count[taken].push_back(IdleGpus(snapshot.node(node)));
  }
  const auto most = std::ranges::max_element(idle_by_count, {},
                                             [](const auto& entry) { return entry.second.size(); });
  if (most == idle_by_count.end() || most->second.size() < 2) return 0;
  return AlignRails(most->second, most->first).rails;
}

// The same pods on the node, whole GPUs on the rails; none where that does not come out.
std::vector<Placement> Realigned(const Node& from, const GangAsk& ask, const Places& places,
                                 GpuMask rails) {
  Node node = from;
  std::vector<Placement> result(places.size());
  for (const bool whole : {false, true}) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (TakesWhole(ask, *places[i]) != whole) continue;
      const PodRequest& pod = ask.members[places[i]->member].pod;
      result[i] = places[i]->placement;
      if (whole) {
        const auto choices = DeviceChoices(node, pod.shape, DeviceRule::kFirst);
        if (choices.empty()) return {};
        result[i] = OnRails(node, pod.shape, PlacementFor(node, pod.shape, choices.front()), rails);
      }
      if (!node.CanTake(result[i])) return {};
      node.Put(std::make_shared<const PodRecord>(PodRecord{pod, result[i]}));
    }
  }
  return result;
}

}  // namespace

int MemberRank(const PodRequest& pod) {
  for (const std::string_view key : kIndexLabels) {
    if (pod.labels == nullptr) break;
    if (const std::string* const value = FindLabel(*pod.labels, key)) return NumberIn(*value);
  }
  const std::string_view name = pod.id.name;
  const std::size_t last = name.find_last_not_of(kDigits);
  return NumberIn(last == std::string_view::npos ? name : name.substr(last + 1));
}

std::vector<GangPlan::Place> DealByRank(const DomainTree& tree, std::span<const GangClass> classes,
                                        std::vector<ClassPlace> places) {
  std::ranges::stable_sort(places, {}, [&](const ClassPlace& place) {
    const TopologyDomain narrowest =
        tree.levels() == 0 ? DomainTree::kCluster : tree.DomainOf(place.node, tree.levels() - 1);
    return std::tuple(place.of_class, narrowest, place.node);
  });
  std::vector<GangPlan::Place> dealt;
  std::vector<std::size_t> next(classes.size(), 0);
  for (ClassPlace& place : places) {
    const std::size_t member = classes[place.of_class].members[next[place.of_class]++];
    dealt.push_back({member, place.node, std::move(place.placement)});
  }
  return dealt;
}

void AlignOnRails(const Snapshot& snapshot, const GangAsk& ask, std::span<GangPlan::Place> places) {
  std::map<NodeIndex, Places> by_node;
  for (GangPlan::Place& place : places) by_node[place.node].push_back(&place);
  const GpuMask present = RailsOfPresent(snapshot, ask);
  const GpuMask rails = present != 0 ? present : RailsOfPlan(snapshot, ask, by_node);
  if (rails == 0) return;
  for (const auto& [index, on_node] : by_node) {
    if ((WholeOn(ask, on_node) & ~rails) == 0) continue;
    std::vector<Placement> moved = Realigned(snapshot.node(index), ask, on_node, rails);
    for (std::size_t i = 0; i < moved.size(); ++i) on_node[i]->placement = std::move(moved[i]);
  }
}

}  // namespace berth
