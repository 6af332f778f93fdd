// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/held_devices.h"

#include <algorithm>
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

constexpr std::string_view kSaidBy = "status of pods";

bool SaysUnwell(const PodRecords& pods, const std::string& id) {
  return std::ranges::any_of(
      pods, [&id](const auto& pod) { return pod->given != nullptr && pod->given->IsUnwell(id); });
}

// Whether that text in a status stands for the device with that name in its ResourceSlice: it is
// "driver/pool/NAME", or the name of a CDI device, which ends in it.
// (Kubernetes 1.37, pkg/kubelet/cm, buildResourceHealth.)
bool StandsFor(std::string_view id, std::string_view device) {
  id = id.substr(id.find_last_of("/=") + 1);
  if (device.empty() || !id.ends_with(device)) return false;
  id.remove_suffix(device.size());
  return id.empty() || id.ends_with('-');
}

// The UUIDs of the GPUs that claims hold as a whole and that go by that text.
std::set<std::string> GpusBehind(const std::string& id, const NodeSpec& said,
                                 const Node::Claims& claims) {
  std::set<std::string> uuids;
  if (claims == nullptr) return uuids;
  for (const ClaimedGpu& held : *claims) {
    if (!held.profile.empty() || !StandsFor(id, held.device)) continue;
    ForEachGpu(HeldByClaims(said, std::span(&held, 1)),
               [&](int gpu) { uuids.insert(said.UuidOf(gpu)); });
  }
  uuids.erase("");
  return uuids;
}

// What the status of a pod says of the devices of its claims.
void HearOfClaims(const PodRecord& pod, const NodeSpec& said, const Node::Claims& claims,
                  std::set<std::string>& unwell) {
  if (pod.given == nullptr) return;
  for (const std::string& id : pod.given->claimed) {
    for (const std::string& uuid : GpusBehind(id, said, claims)) {
      if (pod.given->IsUnwell(id)) {
        unwell.insert(uuid);
      } else {
        unwell.erase(uuid);
      }
    }
  }
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
  if (offered.gpus == SliceGpus()) return in_slices_.erase(offered.node) > 0;
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
  const bool are_offered = gpus != in_slices_.end() && !OffersOwnGpus(spec);
  const bool by_name = are_offered && !gpus->second.names.empty();
  spec.beside.in_slices = are_offered && !by_name ? static_cast<int>(gpus->second.gpus.size()) : 0;
  spec.beside.of_drivers.clear();
  if (gpus != in_slices_.end()) spec.beside.of_drivers = gpus->second.of_drivers;
  for (const auto& [what, count] : spec.beside.of_drivers)
    spec.beside.in_slices += are_offered && !by_name ? count : 0;
  if (by_name) {
    said_.insert_or_assign(spec.name, spec);
    spec = WithSliceGpus(std::move(spec), gpus->second);
  }
  if (spec.mig.known() && !spec.mig->by_claims()) return spec;
  const auto offered = offered_.find(spec.name);
  spec.mig = offered == offered_.end() ? NodeMig() : offered->second;
  return spec;
}

bool UnwellGpus::Hear(const std::string& node, const GivenDevices* before, const GivenDevices* now,
                      const NodeSpec* spec) {
  const auto known = by_node_.find(node);
  if (known == by_node_.end()) {
    if (now == nullptr || now->unwell.empty()) return false;
    Entry entry{.ids = {now->unwell.begin(), now->unwell.end()}, .said = nullptr};
    if (spec != nullptr) entry.said = std::make_shared<const NodeSpec>(*spec);
    by_node_.emplace(node, std::move(entry));
    return true;
  }
  if (now == nullptr) return before != nullptr && !before->unwell.empty();
  std::set<std::string>& ids = known->second.ids;
  const std::set<std::string> was = ids;
  bool well = false;  // a claim's device, by what is said now
  for (const auto* const names : {&now->ids, &now->mig, &now->claimed}) {
    for (const std::string& id : *names) {
      if (now->IsUnwell(id)) {
        ids.insert(id);
      } else {
        ids.erase(id);
        well = well || names == &now->claimed;
      }
    }
  }
  return ids != was || (well && !known->second.claimed.empty());
}

void UnwellGpus::Close(NodeSpec& said, const PodRecords& pods, const Node::Claims& claims) {
  const auto known = by_node_.find(said.name);
  if (known == by_node_.end()) return;
  Entry& entry = known->second;
  if (said.missing == 0) {
    std::erase_if(entry.ids, [&pods](const std::string& id) { return !SaysUnwell(pods, id); });
  }
  for (const auto& pod : pods) HearOfClaims(*pod, said, claims, entry.claimed);
  if (entry.ids.empty() && entry.claimed.empty()) {
    by_node_.erase(known);
    return;
  }
  entry.said = std::make_shared<const NodeSpec>(said);
  for (const auto* const names : {&entry.ids, &entry.claimed}) {
    for (const std::string& id : *names) (void)CloseNamed(said, id, kSaidBy);
  }
}

void UnwellGpus::ForgetClaimed(std::string_view node) {
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) known->second.claimed.clear();
}

const NodeSpec& UnwellGpus::SaidOf(const NodeSpec& spec) const {
  const auto known = by_node_.find(spec.name);
  const bool has = known != by_node_.end() && known->second.said != nullptr;
  return has ? *known->second.said : spec;
}

void UnwellGpus::Forget(std::string_view node) {
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) by_node_.erase(known);
}

}  // namespace berth
