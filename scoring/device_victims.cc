// SPDX-License-Identifier: Apache-2.0
#include "scoring/device_victims.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "scoring/admission.h"
#include "scoring/reason.h"

namespace berth {
namespace {

struct Cost {
  bool gang = false;
  int priority = std::numeric_limits<int>::min();
  std::size_t pods = 0;
  std::int64_t priority_sum = 0, lost = 0, milli = 0;
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

Cost CostOf(const Node& node, const std::vector<std::string>& uids, WallTime now) {
  Cost cost;
  for (const std::string& uid : uids) {
    const PodRecord* const held = node.FindPod(uid);
    if (held == nullptr) continue;
    cost.gang = cost.gang || !held->pod.gang.empty();
    cost.priority = std::max(cost.priority, held->pod.priority);
    ++cost.pods;
    cost.priority_sum += held->pod.priority;
    cost.lost += WorkLost(*held, now);
    cost.milli += GpuMilliOf(*held);
  }
  return cost;
}

std::vector<std::string> EndingOn(const Node& node) {
  std::vector<std::string> uids;
  for (const auto& held : node.pods()) {
    if (held->leaving) uids.push_back(held->pod.id.uid);
  }
  return uids;
}

// What it judges beside GPUs, CPU, memory, disk, taints and selectors.
bool IsJudgedByOthers(const PodRequest& pod) { return pod.own_to_scheduler != OwnToScheduler{}; }

}  // namespace

bool GivesDevices(const Node& node, const PodRequest& pod) {
  return !pod.device_class.empty() && pod.shape.wants_gpu() && !node.spec().by_claims.empty() &&
         node.spec().GivesGpusAs(pod.shape.gpu_resource);
}

Node HeldByPods(const Node& node) {
  if (node.claims() == nullptr) return node;
  auto others = std::make_shared<std::vector<ClaimedGpu>>();
  for (const ClaimedGpu& held : *node.claims()) {
    const bool by_pod =
        !held.pod.empty() && held.IsWholeOf(held.pod) && node.FindPod(held.pod) != nullptr;
    if (!by_pod) others->push_back(held);
  }
  return node.WithClaims(std::move(others));
}

DeviceVictims VictimsForDevices(const Snapshot& snapshot, const PodRequest& pod,
                                const EvictionLimits& limits,
                                const std::function<bool(const std::string& node)>& skips) {
  using enum DeviceVictims::Outcome;
  const bool alone = pod.gang.empty() && !pod.domain.required;
  if (!pod.may_preempt || !alone || !pod.refusal.empty()) return {};
  std::optional<std::pair<Cost, DeviceVictims>> best;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (!node.spec().has_gpus() || Admits(node.spec(), pod) != Reason::kFits) continue;
    const bool gives = GivesDevices(node, pod);
    if (gives && skips && skips(node.spec().name)) continue;
    const std::vector<std::string> ending = gives ? EndingOn(node) : std::vector<std::string>();
    if (ending.empty() && node.lowest_priority() >= pod.priority) continue;
    auto uids = AddedVictims(gives ? HeldByPods(node) : node, pod, ending, limits);
    if (!uids) continue;
    if (!gives || uids->empty()) return {.outcome = kWait};
    const Cost cost = CostOf(node, *uids, limits.now);
    if (!best || cost < best->first) best.emplace(cost, DeviceVictims{kEvict, i, *std::move(uids)});
  }
  if (!best) return {};
  if (IsJudgedByOthers(pod)) return {.outcome = kUndecided};
  return std::move(best->second);
}

}  // namespace berth
