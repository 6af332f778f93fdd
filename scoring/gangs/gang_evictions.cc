// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_evictions.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace berth {
namespace {

// Between a number of nodes that is too small and one that suffices the smallest is looked for
// where that is so cheap.
constexpr std::size_t kMostNodesToSpare = 512;

struct Clearable {
  NodeIndex node = kNoNode;
  std::vector<std::string> uids;  // that may go
  int priority = std::numeric_limits<int>::min();
  int pods = 0;
};

std::vector<Clearable> ClearableNodes(const Snapshot& snapshot, const PodRequest& pod,
                                      const EvictionLimits& limits) {
  std::vector<Clearable> nodes;
  for (NodeIndex index = 0; index < snapshot.size(); ++index) {
    const Node& node = snapshot.node(index);
    if (node.gpus().empty() || node.lowest_priority() >= pod.priority) continue;
    Clearable clearable{.node = index, .uids = EvictableFrom(node, pod, limits)};
    for (const std::string& uid : clearable.uids) {
      const PodRecord* const held = node.FindPod(uid);
      if (held->leaving) continue;
      clearable.priority = std::max(clearable.priority, held->pod.priority);
      ++clearable.pods;
    }
    if (!clearable.uids.empty()) nodes.push_back(std::move(clearable));
  }
  std::ranges::sort(nodes, {}, [](const Clearable& node) {
    return std::tuple(node.priority, node.pods, node.node);
  });
  return nodes;
}

// The plan where the first nodes are emptied.
tl::expected<GangPlan, GangShortage> PlanWith(const Planning& with, const GangAsk& ask,
                                              std::span<const Clearable> emptied) {
  std::shared_ptr<const Snapshot> snapshot = with.snapshot;
  for (const Clearable& clearable : emptied) {
    auto node =
        std::make_shared<const Node>(WithoutPods(snapshot->node(clearable.node), clearable.uids));
    snapshot = std::make_shared<const Snapshot>(snapshot->With(clearable.node, std::move(node)));
  }
  return PlanGang({snapshot, with.tree, with.engine, with.room}, ask);
}

}  // namespace

tl::expected<GangPlan, GangShortage> PlanAfterEvictions(const Planning& with, const GangAsk& ask,
                                                        const EvictionLimits& limits) {
  const PodRequest& least = std::ranges::min_element(ask.members, {}, [](const GangMember& member) {
                              return member.pod.priority;
                            })->pod;
  const std::vector<Clearable> nodes = ClearableNodes(*with.snapshot, least, limits);
  if (nodes.empty()) return PlanGang(with, ask);
  const auto first = [&nodes](std::size_t count) { return std::span(nodes).first(count); };
  std::size_t too_few = 0, enough = std::min(nodes.size(), ask.members.size());
  auto plan = PlanWith(with, ask, first(enough));
  while (!plan && enough < nodes.size()) {
    too_few = std::exchange(enough, std::min(nodes.size(), enough * 2));
    plan = PlanWith(with, ask, first(enough));
  }
  while (plan && enough - too_few > 1 && enough <= kMostNodesToSpare) {
    const std::size_t middle = (too_few + enough) / 2;
    auto smaller = PlanWith(with, ask, first(middle));
    (smaller ? enough : too_few) = middle;
    if (smaller) plan = std::move(smaller);
  }
  return plan;
}

}  // namespace berth
