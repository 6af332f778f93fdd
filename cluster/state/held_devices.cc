// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/held_devices.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

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

template <class T>
void Insert(std::vector<T>& entries, typename std::vector<T>::const_iterator at, const T& entry) {
  const auto position = at - entries.cbegin();
  ReserveOneMore(entries);
  entries.insert(entries.begin() + position, entry);
}

void AddPart(HeldOnNode& held, const HeldPart& part) {
  const auto gpu = std::ranges::lower_bound(held.gpus, part.gpu, {}, &HeldGpu::gpu);
  if (gpu == held.gpus.end() || gpu->gpu != part.gpu) {
    Insert(held.gpus, gpu, {part.gpu, part.milli, part.memory_mib});
  } else {
    gpu->milli += part.milli;
    gpu->memory_mib += part.memory_mib;
  }
  Insert(held.parts, std::upper_bound(held.parts.cbegin(), held.parts.cend(), part), part);
}

void RemovePart(HeldOnNode& held, const HeldPart& part) {
  const auto found = std::lower_bound(held.parts.begin(), held.parts.end(), part);
  if (found == held.parts.end() || part < *found) return;
  held.parts.erase(found);
  const auto gpu = std::ranges::lower_bound(held.gpus, part.gpu, {}, &HeldGpu::gpu);
  gpu->milli -= part.milli;
  gpu->memory_mib -= part.memory_mib;
  if (held.PartsOf(part.gpu).empty()) held.gpus.erase(gpu);
}

}  // namespace

bool operator<(const HeldPart& a, const HeldPart& b) {
  const auto key = [](const HeldPart& part) {
    return std::tuple(part.gpu, -part.milli, -part.memory_mib,
                      std::string_view(part.pod->pod.id.uid));
  };
  return key(a) < key(b);
}

const HeldGpu* HeldOnNode::Find(int gpu) const {
  const auto found = std::ranges::lower_bound(gpus, gpu, {}, &HeldGpu::gpu);
  return found == gpus.end() || found->gpu != gpu ? nullptr : &*found;
}

std::span<const HeldPart> HeldOnNode::PartsOf(int gpu) const {
  const auto begin = std::ranges::lower_bound(parts, gpu, {}, &HeldPart::gpu);
  const auto end = std::ranges::upper_bound(parts, gpu, {}, &HeldPart::gpu);
  return {parts.data() + (begin - parts.begin()), static_cast<std::size_t>(end - begin)};
}

void HeldDevices::Add(const PodRecord& record, const NodeSpec* node) {
  if (record.planned || (record.placement.grants.empty() && record.placement.mig.empty())) return;
  HeldOnNode& held = by_node_[record.placement.node];
  for (const DeviceGrant& grant : record.placement.grants) {
    if (grant.gpu >= 0) AddPart(held, {grant.gpu, grant.milli, grant.memory_mib, &record});
  }
  ForEachSlot(record, node, [&](const MigSlot& slot) {
    held.slots[slot].insert({0, kMilliPerGpu, 0, &record});
  });
}

void HeldDevices::Remove(const PodRecord& record, const NodeSpec* node) {
  const auto found = by_node_.find(record.placement.node);
  if (record.planned || found == by_node_.end()) return;
  HeldOnNode& held = found->second;
  for (const DeviceGrant& grant : record.placement.grants) {
    RemovePart(held, {grant.gpu, grant.milli, grant.memory_mib, &record});
  }
  ForEachSlot(record, node, [&](const MigSlot& slot) {
    const auto holders = held.slots.find(slot);
    if (holders == held.slots.end()) return;
    const auto part = holders->second.find({0, kMilliPerGpu, 0, &record});
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

bool NodeClaims::Put(const GpusClaimed& claimed) {
  Held& held = held_[claimed.node];
  std::vector<ClaimedGpu>& of_source = held.by_source[claimed.source];
  const bool changed = of_source != claimed.gpus;
  of_source = claimed.gpus;
  std::vector<ClaimedGpu> all;
  for (const auto& [source, gpus] : held.by_source) all.insert(all.end(), gpus.begin(), gpus.end());
  if (all.empty()) {
    held_.erase(claimed.node);
  } else if (changed) {
    held.all = std::make_shared<const std::vector<ClaimedGpu>>(std::move(all));
  }
  return changed;
}

bool NodeClaims::Put(const GpusOffered& offered) {
  if (!offered.mig.known()) return offered_.erase(offered.node) > 0;
  offered_.insert_or_assign(offered.node, offered.mig);
  return true;
}

bool NodeClaims::Put(const SliceGpusOffered& offered) {
  if (offered.gpus.names.empty()) return in_slices_.erase(offered.node) > 0;
  const auto [known, is_new] = in_slices_.try_emplace(offered.node, offered.gpus);
  if (!is_new && known->second == offered.gpus) return false;
  known->second = offered.gpus;
  return true;
}

Node::Claims NodeClaims::HeldOn(const std::string& node) const {
  const auto held = held_.find(node);
  return held == held_.end() ? nullptr : held->second.all;
}

NodeSpec NodeClaims::WithOffers(NodeSpec spec) {
  if (const auto said = said_.find(spec.name); said != said_.end()) {
    if (!spec.by_claims.empty()) spec = std::move(said->second);
    said_.erase(said);
  }
  const auto gpus = in_slices_.find(spec.name);
  if (gpus != in_slices_.end() && !OffersOwnGpus(spec)) {
    said_.insert_or_assign(spec.name, spec);
    spec = WithSliceGpus(std::move(spec), gpus->second);
  }
  if (spec.mig.known() && !spec.mig->by_claims()) return spec;
  const auto offered = offered_.find(spec.name);
  spec.mig = offered == offered_.end() ? NodeMig() : offered->second;
  return spec;
}

}  // namespace berth
