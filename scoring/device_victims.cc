// SPDX-License-Identifier: Apache-2.0
#include "scoring/device_victims.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/reason.h"

namespace berth {
namespace {

struct NodeCost {
  bool gang = false;
  int priority = std::numeric_limits<int>::min();
  std::size_t pods = 0;
  std::int64_t priority_sum = 0, lost = 0, milli = 0;
  friend auto operator<=>(const NodeCost&, const NodeCost&) = default;
};

NodeCost CostOf(const Node& node, const std::vector<std::string>& uids, WallTime now) {
  NodeCost cost;
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

// What it judges beside GPUs, claims, CPU, memory, disk, taints and selectors.
bool IsJudgedByOthers(const PodRequest& pod) {
  OwnToScheduler others = pod.own_to_scheduler;
  // Of resources that Berth does not read these may be its claims alone.
  if (!pod.claims.empty() && pod.others == nullptr) others.resources = false;
  return others != OwnToScheduler{};
}

// The GPUs in ascending order.
std::vector<DeviceGrant> GrantsOf(const Node& node, const std::vector<const ClaimedGpu*>& devices) {
  std::vector<ClaimedGpu> held;
  for (const ClaimedGpu* const device : devices) held.push_back(*device);
  std::vector<DeviceGrant> grants;
  ForEachGpu(HeldByClaims(node.spec(), held), [&](int gpu) {
    grants.push_back({gpu, kMilliPerGpu, node.spec().FindGpu(gpu)->memory_mib});
  });
  return grants;
}

// As if the pod had asked for these by a name.
std::shared_ptr<const PodRecord> WithGpus(const PodRecord& held, std::vector<DeviceGrant> grants) {
  auto pod = std::make_shared<PodRecord>(held);
  pod->pod.shape.gpus = WholeGpus{std::max(static_cast<int>(grants.size()), 1)};
  pod->pod.shape.gpu_resource = kOfClaims;
  pod->placement.grants = std::move(grants);
  return pod;
}

// Where parts are given: pods that have devices, or parts, of claims that are for them alone ask
// for GPUs, and the claims stay.
Node HeldInParts(const Node& node, const ClaimEnds& ends) {
  Node as_held = node;
  for (const HeldByPod& held : GpusByPod(node, ends)) {
    const PodRecord* const pod = held.uid.empty() ? nullptr : node.FindPod(held.uid);
    if (pod != nullptr && !pod->pod.shape.wants_gpu()) as_held.Put(WithGpus(*pod, {}));
  }
  return as_held;
}

}  // namespace

bool GivesDevices(const Node& node, const PodRequest& pod) {
  return !pod.device_class.empty() && pod.shape.wants_gpu() && !node.spec().by_claims.empty() &&
         node.spec().GivesGpusAs(pod.shape.gpu_resource);
}

Node HeldByPods(const Node& node, const ClaimEnds& ends) {
  if (node.claims() == nullptr) return node;
  const std::vector<HeldByPod> by_pod = GpusByPod(node, ends);
  std::set<const ClaimedGpu*> of_pods;
  for (const HeldByPod& held : by_pod) of_pods.insert(held.devices.begin(), held.devices.end());
  auto others = std::make_shared<std::vector<ClaimedGpu>>();
  for (const ClaimedGpu& held : *node.claims()) {
    if (!of_pods.contains(&held)) others->push_back(held);
  }
  Node as_held = node.WithClaims(std::move(others));
  for (const HeldByPod& held : by_pod) {
    if (held.uid.empty()) continue;
    const PodRecord& pod = *node.FindPod(held.uid);
    if (pod.pod.shape.wants_gpu()) continue;  // its grants say it
    std::vector<DeviceGrant> grants = GrantsOf(node, held.devices);
    if (!grants.empty()) as_held.Put(WithGpus(pod, std::move(grants)));
  }
  return as_held;
}

DeviceVictims VictimsForDevices(const Snapshot& snapshot, const PodRequest& pod,
                                const EvictionLimits& limits,
                                const std::function<bool(const std::string& node)>& skips,
                                ClaimRoom* room, const ClaimEnds& ends) {
  using enum DeviceVictims::Outcome;
  const bool alone = pod.gang.empty() && !pod.domain.required;
  if (!pod.may_preempt || !alone || !pod.refusal.empty()) return {};
  PodRequest asked = pod;
  std::optional<std::pair<NodeCost, DeviceVictims>> best;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (Admits(node.spec(), pod) != Reason::kFits) continue;
    const bool gives = room != nullptr ? room->DevicesOn(node) != nullptr : GivesDevices(node, pod);
    if (!gives && (room != nullptr || !node.spec().has_gpus())) continue;
    const bool in_parts = room != nullptr && room->InParts(node);
    if (room != nullptr) asked.shape = room->shape(in_parts);
    if (gives && skips && skips(node.spec().name)) continue;
    const std::vector<std::string> ending = gives ? EndingOn(node) : std::vector<std::string>();
    const bool some_end =
        gives && ends && node.claims() != nullptr && std::ranges::any_of(*node.claims(), ends);
    if (ending.empty() && !some_end && node.lowest_priority() >= pod.priority) continue;
    const auto has_devices = [room, &node, &ends](const Node& left) {
      return room->Has(node, left, ends);
    };
    const Node held = !gives ? node : in_parts ? HeldInParts(node, ends) : HeldByPods(node, ends);
    auto uids =
        AddedVictims(held, asked, ending, limits, room == nullptr ? NodeSuffices() : has_devices);
    if (room != nullptr && room->ran_out()) return {.outcome = kUndecided};
    if (!uids) continue;
    if (!gives || uids->empty()) return {.outcome = kWait};
    const NodeCost cost = CostOf(node, *uids, limits.now);
    if (!best || cost < best->first) best.emplace(cost, DeviceVictims{kEvict, i, *std::move(uids)});
  }
  if (!best) return {};
  if (IsJudgedByOthers(pod)) return {.outcome = kUndecided};
  return std::move(best->second);
}

}  // namespace berth
