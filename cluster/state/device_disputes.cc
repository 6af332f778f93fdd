// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/device_disputes.h"

#include <algorithm>

#include "base/text.h"
#include "cluster/node/given_grants.h"
#include "cluster/node/mig_use.h"

namespace berth {
namespace {

// Whether one of them reserves the GPU for shares that another scheduler gives, like the other.
bool IsReservedFor(const RequestShape& one, const RequestShape& other) {
  if (other.share_mode == ShareMode::kReserved) return one.share_mode != ShareMode::kUnsaid;
  return one.share_mode == ShareMode::kReserved && other.share_mode != ShareMode::kUnsaid;
}

// The part of the GPU that other pods are known to hold, and the pod that holds most.
struct Held {
  std::int64_t milli = 0;
  std::int64_t memory_mib = 0;
  const HeldPart* most = nullptr;
};

Held HeldOf(int gpu, const PodRequest& pod, const HeldOnNode& there) {
  Held held;
  const HeldGpu* const found = there.Find(gpu);
  if (found == nullptr) return held;
  held.milli = found->milli;
  held.memory_mib = found->memory_mib;
  for (const HeldPart& part : there.PartsOf(gpu)) {  // the pod's own are few
    const PodRequest& other = part.pod->pod;
    if (other.id.uid == pod.id.uid) continue;
    if (!IsReservedFor(pod.shape, other.shape)) {
      held.most = &part;
      break;
    }
    held.milli -= part.milli;
    held.memory_mib -= part.memory_mib;
  }
  return held;
}

// Without what the pod itself holds of it.
Held HeldByOthers(int gpu, const PodRequest& pod, const PodRecord* own, const HeldOnNode& there) {
  Held held = HeldOf(gpu, pod, there);
  if (own == nullptr) return held;
  for (const DeviceGrant& grant : own->placement.grants) {
    if (grant.gpu != gpu) continue;
    held.milli -= grant.milli;
    held.memory_mib -= grant.memory_mib;
  }
  return held;
}

std::string WhyNotMigBeside(const Placement& said, std::string_view uid, const HeldOnNode& there,
                            const MigSpec& spec) {
  for (const MigGrant& grant : said.mig) {
    const auto slot = SlotOf(spec, grant);
    if (!slot) continue;
    for (auto taken = there.slots.lower_bound({slot->gpu, 0});
         taken != there.slots.end() && taken->first.gpu == slot->gpu; ++taken) {
      const MigSet room = spec.Room(slot->gpu, MigSet{1} << taken->first.placement);
      if ((room >> slot->placement & 1) != 0) continue;
      const auto other = std::ranges::find_if(
          taken->second, [uid](const HeldPart& part) { return part.pod->pod.id.uid != uid; });
      if (other == taken->second.end()) continue;
      return NameOf(grant) + " is held by pod " + other->pod->pod.id.full_name();
    }
  }
  return "";
}

bool HasDevices(const Placement& placement) {
  return !placement.grants.empty() || !placement.mig.empty();
}

// Why that node cannot have given the devices; "" = it can.
std::string WhyNotOnNode(const Placement& said, const NodeSpec& node) {
  const bool says_all = std::ranges::none_of(node.gpus, &std::string::empty, &GpuSpec::uuid);
  for (const DeviceGrant& grant : said.grants) {
    if (!grant.uuid.empty()) {
      if (!says_all ||
          std::ranges::find(node.gpus, grant.uuid, &GpuSpec::uuid) != node.gpus.end()) {
        continue;
      }
      return "the node has no GPU of that UUID";
    }
    if (node.FindGpu(grant.gpu) != nullptr) continue;
    return "the node has " + std::to_string(node.gpus.size()) + " GPUs";
  }
  return "";
}

// Why the pod cannot have the devices beside the others on the node; "" = it can. own: the pod's
// record there; nullptr: it has none.
std::string WhyNotBeside(const Placement& said, const PodRequest& pod, const PodRecord* own,
                         const HeldOnNode& there, const NodeSpec* node) {
  if (node != nullptr) {
    if (std::string why_not = WhyNotOnNode(said, *node); !why_not.empty()) return why_not;
  }
  for (const DeviceGrant& grant : said.grants) {
    if (grant.gpu < 0) continue;
    const Held held = HeldByOthers(grant.gpu, pod, own, there);
    if (held.most == nullptr) continue;
    const GpuSpec* const gpu = node == nullptr ? nullptr : node->FindGpu(grant.gpu);
    const std::int64_t memory_mib = gpu == nullptr ? 0 : gpu->memory_mib;
    const bool fits = held.milli + grant.milli <= kMilliPerGpu &&
                      (memory_mib == 0 || held.memory_mib + grant.memory_mib <= memory_mib);
    if (fits) continue;
    return "pod " + held.most->pod->pod.id.full_name() + " holds " +
           std::to_string(held.most->milli) + " milli of GPU " + std::to_string(grant.gpu);
  }
  if (node == nullptr || !node->mig.known()) return "";
  return WhyNotMigBeside(said, pod.id.uid, there, *node->mig);
}

// Whether other pods hold every device in `said` whole. Then an assumption may take its place: none
// of these GPUs is given away, even if the annotation is true and the other pod has left unnoticed.
bool IsHeldByOthers(const Placement& said, const PodRequest& pod, const HeldOnNode& there,
                    const NodeSpec* node) {
  return said.mig.empty() && std::ranges::all_of(said.grants, [&](const DeviceGrant& grant) {
           if (node != nullptr && node->FindGpu(grant.gpu) == nullptr) return true;
           const HeldPart* const most = HeldOf(grant.gpu, pod, there).most;
           return most != nullptr && most->milli == kMilliPerGpu &&
                  most->memory_mib >= grant.memory_mib;
         });
}

// What a placement names, as the keys of open disputes. A GPU is its index.
constexpr int kNotIndexed = -1;  // nothing, or a UUID that the node does not have
constexpr int kMigDevice = -2;

std::vector<int> NamedBy(const Placement& placement) {
  std::vector<int> named;
  for (const DeviceGrant& grant : placement.grants) {
    named.push_back(grant.gpu >= 0 ? grant.gpu : kNotIndexed);
  }
  if (!placement.mig.empty()) named.push_back(kMigDevice);
  std::ranges::sort(named);
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

// Whether it names a GPU by its index that the node does not have at present: its device plugin may
// have been restarted.
bool NamesAbsentGpu(const Placement& placement, const NodeSpec* node) {
  return node != nullptr && std::ranges::any_of(placement.grants, [node](const DeviceGrant& grant) {
           return grant.uuid.empty() && node->FindGpu(grant.gpu) == nullptr;
         });
}

// `said`, with the devices that are held.
Placement Kept(Placement said, const Placement& held) {
  said.grants = held.grants;
  said.mig = held.mig;
  return said;
}

// Whether what is known so far leaves something open, and what is said now may be the same.
bool MayBeMoreExact(const Placement& known, const Placement& said) {
  if (!HasNamedGrants(known) || !HasDevices(said)) return false;
  return std::ranges::all_of(known.grants, [&said](const DeviceGrant& grant) {
    return !grant.uuid.empty() ||
           std::ranges::find(said.grants, grant.gpu, &DeviceGrant::gpu) != said.grants.end();
  });
}

}  // namespace

bool Specifies(const Placement& known, const Placement& said) {
  if (known.grants != said.grants || known.mig.size() != said.mig.size()) return false;
  std::vector<MigGrant> left = said.mig;
  const auto take = [&left](const auto& fits) {
    const auto found = std::ranges::find_if(left, fits);
    if (found == left.end()) return false;
    left.erase(found);
    return true;
  };
  for (const MigGrant& grant : known.mig) {
    if (grant.exact() && !take([&grant](const MigGrant& g) { return g == grant; })) return false;
  }
  return std::ranges::all_of(known.mig, [&take](const MigGrant& grant) {
    return grant.exact() || take([&grant](const MigGrant& g) {
             return g.profile == grant.profile && g.shared == grant.shared;
           });
  });
}

Placement DeviceDisputes::Believe(const PodBound& bound, const PodRecord* held,
                                  const HeldOnNode& there, const NodeSpec* node) {
  const std::string& uid = bound.pod.id.uid;
  const Placement said = WithIndices(bound.placement, node);
  const bool stays = held != nullptr && held->placement.node == said.node;
  const PodRecord* const own = stays ? held : nullptr;
  const bool has = stays && HasDevices(held->placement);
  // The devices that it named first, if these could not be believed yet.
  const auto entry = by_uid_.find(uid);
  const bool waits = entry != by_uid_.end() && entry->second.open;
  const Placement first_said = waits ? entry->second.said : bound.placement;
  const Placement first = WithIndices(first_said, node);
  const bool anew = has && held->said != nullptr && *held->said == bound.placement;
  if (anew && !waits && NamesAbsentGpu(said, node)) return Kept(said, held->placement);
  const bool known = has && held->state == PodState::kBound && !waits && !anew &&
                     !MayBeMoreExact(held->placement, said);
  // It was bound with what was reserved for it here, whatever others have claimed meanwhile.
  const bool is_ours = has && held->state == PodState::kReserved && HasDevices(said) &&
                       Specifies(held->placement, said);
  std::string why_not;
  if (known && !Specifies(held->placement, said)) {
    why_not = "Berth knows it to have " + DevicesText(held->placement);
  } else if (!known && !is_ours && HasDevices(said)) {
    why_not = Check(said, bound.pod, own, there, node);
  } else if (waits && !is_ours) {
    why_not = "it said " + DevicesText(first) + " before";
  } else if (bound.lacks_devices) {
    return DisputeLack(bound, has ? held : nullptr);
  }
  if (why_not.empty()) {
    Forget(uid);
    return said;
  }
  Placement believed = Kept(said, known ? held->placement : first);
  if (!known && IsHeldByOthers(first, bound.pod, there, node)) {
    const bool reserved = has && held->state == PodState::kReserved;
    believed.grants = reserved ? held->placement.grants : std::vector<DeviceGrant>();
  }
  std::string problem = "says " + DevicesText(said) + " on node " + said.node + ", but " + why_not;
  Begin({{bound.pod.id, std::move(problem)}, first_said, !known}, first);
  return believed;
}

// What it was reserved here it keeps: nothing better is known.
Placement DeviceDisputes::DisputeLack(const PodBound& bound, const PodRecord* held) {
  Placement believed = held == nullptr ? bound.placement : Kept(bound.placement, held->placement);
  const char* const problem =
      "is missing, although Berth chose the pod's devices (berth.dev/decision)";
  Begin({.dispute = {bound.pod.id, problem},
         .said = bound.placement,
         .lacks = bound.pod.shape.mig() == nullptr ? Lack::kGpus : Lack::kMigDevices},
        bound.placement);
  return believed;
}

std::optional<Placement> DeviceDisputes::DisputeUnknown(const PodRecord& held,
                                                        const NodeSpec& node) {
  const std::string why_not = WhyNotOnNode(held.placement, node);
  if (why_not.empty() || held.state != PodState::kBound || !held.annotated) return std::nullopt;
  Placement placement = held.placement;
  if (IsHeldByOthers(placement, held.pod, {}, &node)) placement.grants.clear();
  std::string problem =
      "says " + DevicesText(held.placement) + " on node " + node.name + ", but " + why_not;
  Begin({{held.pod.id, std::move(problem)}, held.placement, true}, held.placement);
  return placement;
}

std::vector<std::string> DeviceDisputes::OpenOn(std::string_view node) const {
  std::set<std::string> uids;
  if (const auto there = open_.find(node); there != open_.end()) {
    for (const auto& [device, naming] : there->second) uids.insert(naming.begin(), naming.end());
  }
  return {uids.begin(), uids.end()};
}

std::optional<std::string> DeviceDisputes::NextBeside(const Placement& freed,
                                                      const std::string& after) const {
  const std::string* next = nullptr;
  const auto there = open_.find(freed.node);
  if (there == open_.end()) return std::nullopt;
  for (const int device : NamedBy(freed)) {
    const auto naming = there->second.find(device);
    if (device == kNotIndexed || naming == there->second.end()) continue;
    const auto uid = naming->second.upper_bound(after);
    if (uid != naming->second.end() && (next == nullptr || *uid < *next)) next = &*uid;
  }
  return next == nullptr ? std::nullopt : std::optional(*next);
}

bool DeviceDisputes::IsHeldAgain(const Placement& freed, const HeldOnNode& there) const {
  return freed.mig.empty() && std::ranges::all_of(freed.grants, [&](const DeviceGrant& grant) {
           const auto parts = there.PartsOf(grant.gpu);
           if (parts.empty()) return false;
           const HeldPart& most = parts.front();
           const auto entry = by_uid_.find(most.pod->pod.id.uid);
           const bool waits = entry != by_uid_.end() && entry->second.open;
           return !waits && most.milli == kMilliPerGpu && most.memory_mib >= grant.memory_mib;
         });
}

const Placement& DeviceDisputes::SaidOf(std::string_view uid) const {
  return by_uid_.find(uid)->second.said;
}

std::optional<Placement> DeviceDisputes::Reconsider(std::string_view uid, const PodRecord& held,
                                                    const HeldOnNode& there, const NodeSpec* node) {
  const Entry& entry = by_uid_.find(uid)->second;
  const Placement said = WithIndices(entry.said, node);
  Placement placement = held.placement;
  placement.grants = said.grants;
  placement.mig = said.mig;
  if (Check(said, held.pod, &held, there, node).empty()) {
    Forget(uid);
  } else {
    if (NamedBy(said) != entry.named) Begin(entry, said);  // the node's indices have changed
    // Else one of those that held it may have left, and another one may still hold a part.
    if (IsHeldByOthers(said, held.pod, there, node)) return std::nullopt;
  }
  if (placement == held.placement) return std::nullopt;
  return placement;
}

std::string DeviceDisputes::Check(const Placement& said, const PodRequest& pod,
                                  const PodRecord* own, const HeldOnNode& there,
                                  const NodeSpec* node) {
  ++checks_;
  return WhyNotBeside(said, pod, own, there, node);
}

void DeviceDisputes::Begin(Entry entry, const Placement& named) {
  const std::string uid = entry.dispute.pod.uid;
  const auto known = by_uid_.find(uid);
  const bool is_news =
      known == by_uid_.end() || known->second.dispute.problem != entry.dispute.problem;
  if (known != by_uid_.end()) Unlist(known->second);
  if (is_news && follows_) changed_.insert(uid);
  if (entry.open) {
    entry.named = NamedBy(named);
    if (entry.named.empty()) entry.named.push_back(kNotIndexed);
    auto& there = open_[entry.said.node];
    for (const int device : entry.named) there[device].insert(uid);
  }
  by_uid_.insert_or_assign(uid, std::move(entry));
}

void DeviceDisputes::Unlist(const Entry& entry) {
  const auto there = open_.find(entry.said.node);
  if (!entry.open || there == open_.end()) return;
  for (const int device : entry.named) {
    const auto naming = there->second.find(device);
    naming->second.erase(entry.dispute.pod.uid);
    if (naming->second.empty()) there->second.erase(naming);
  }
  if (there->second.empty()) open_.erase(there);
}

void DeviceDisputes::Forget(std::string_view uid) {
  const auto entry = by_uid_.find(uid);
  if (entry == by_uid_.end()) return;
  Unlist(entry->second);
  if (follows_) changed_.insert(entry->first);
  by_uid_.erase(entry);
}

void DeviceDisputes::NodeChanges(std::string_view node) {
  for (const auto& [uid, entry] : by_uid_) {
    if (follows_ && entry.said.node == node) changed_.insert(uid);
  }
}

bool DeviceDisputes::Counts(const Entry& entry, const SpecOf& spec_of) {
  const NodeSpec* const node = spec_of(entry.said.node);
  if (node == nullptr) return false;
  if (entry.lacks == Lack::kGpus) return !node->gpus.empty();
  return entry.lacks == Lack::kNothing || node->mig.known();
}

std::vector<DeviceDispute> DeviceDisputes::List(const SpecOf& spec_of) const {
  std::vector<DeviceDispute> disputes;
  for (const auto& [uid, entry] : by_uid_) {
    if (Counts(entry, spec_of)) disputes.push_back(entry.dispute);
  }
  return disputes;
}

std::size_t DeviceDisputes::Count(const SpecOf& spec_of) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      by_uid_, [&](const auto& entry) { return Counts(entry.second, spec_of); }));
}

std::vector<DisputeChange> DeviceDisputes::TakeChanges(const SpecOf& spec_of) {
  if (!follows_) {
    for (const auto& [uid, entry] : by_uid_) changed_.insert(uid);
  }
  follows_ = true;
  std::vector<DisputeChange> changes;
  for (const std::string& uid : changed_) {
    const auto entry = by_uid_.find(uid);
    const bool counts = entry != by_uid_.end() && Counts(entry->second, spec_of);
    changes.push_back({uid, counts ? std::optional(entry->second.dispute) : std::nullopt});
  }
  changed_.clear();
  return changes;
}

std::string DevicesText(const Placement& placement) {
  std::vector<std::string> devices;
  for (const DeviceGrant& grant : placement.grants) {
    devices.push_back("GPU " + (grant.uuid.empty() ? std::to_string(grant.gpu) : grant.uuid));
    if (grant.milli != kMilliPerGpu) {
      devices.back() += " (" + std::to_string(grant.milli) + " milli)";
    }
  }
  for (const MigGrant& grant : placement.mig) devices.push_back(NameOf(grant));
  return devices.empty() ? "no device" : Listed(devices, 8);
}

}  // namespace berth
