// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/held_devices.h"

#include <optional>
#include <string_view>
#include <tuple>

namespace berth {
namespace {

// Calls visit(slot) for each device of one user that the pod is known to hold.
template <class Visit>
void ForEachSlot(const PodRecord& record, const NodeSpec* node, Visit visit) {
  if (node == nullptr || !node->mig.known()) return;
  for (const MigGrant& grant : record.placement.mig) {
    if (const auto slot = SlotOf(*node->mig, grant)) visit(*slot);
  }
}

}  // namespace

bool operator<(const HeldPart& a, const HeldPart& b) {
  const auto key = [](const HeldPart& part) {
    return std::tuple(-part.milli, -part.memory_mib, std::string_view(part.pod->pod.id.uid));
  };
  return key(a) < key(b);
}

void HeldDevices::Add(const PodRecord& record, const NodeSpec* node) {
  if (record.planned || (record.placement.grants.empty() && record.placement.mig.empty())) return;
  HeldOnNode& held = by_node_[record.placement.node];
  for (const DeviceGrant& grant : record.placement.grants) {
    if (grant.gpu < 0) continue;
    HeldGpu& gpu = held.gpus.try_emplace(grant.gpu).first->second;
    gpu.milli += grant.milli;
    gpu.memory_mib += grant.memory_mib;
    gpu.parts.insert({grant.milli, grant.memory_mib, &record});
  }
  ForEachSlot(record, node, [&](const MigSlot& slot) {
    held.slots[slot].insert({kMilliPerGpu, 0, &record});
  });
}

void HeldDevices::Remove(const PodRecord& record, const NodeSpec* node) {
  const auto found = by_node_.find(record.placement.node);
  if (record.planned || found == by_node_.end()) return;
  HeldOnNode& held = found->second;
  for (const DeviceGrant& grant : record.placement.grants) {
    const auto gpu = held.gpus.find(grant.gpu);
    if (gpu == held.gpus.end()) continue;
    const auto part = gpu->second.parts.find({grant.milli, grant.memory_mib, &record});
    if (part == gpu->second.parts.end()) continue;
    gpu->second.milli -= grant.milli;
    gpu->second.memory_mib -= grant.memory_mib;
    gpu->second.parts.erase(part);
    if (gpu->second.parts.empty()) held.gpus.erase(gpu);
  }
  ForEachSlot(record, node, [&](const MigSlot& slot) {
    const auto holders = held.slots.find(slot);
    if (holders == held.slots.end()) return;
    const auto part = holders->second.find({kMilliPerGpu, 0, &record});
    if (part != holders->second.end()) holders->second.erase(part);
    if (holders->second.empty()) held.slots.erase(holders);
  });
  if (held.empty()) by_node_.erase(found);
}

void HeldDevices::Recount(const std::string& name, const PodRecords& pods, const NodeSpec* node) {
  by_node_.erase(name);
  for (const auto& pod : pods) Add(*pod, node);
}

const HeldOnNode& HeldDevices::On(const std::string& node) const {
  static const HeldOnNode kNothing;
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? kNothing : found->second;
}

}  // namespace berth
