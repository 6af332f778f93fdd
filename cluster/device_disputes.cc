// SPDX-License-Identifier: Apache-2.0
#include "cluster/device_disputes.h"

#include <algorithm>
#include <memory>

#include "cluster/mig_use.h"
#include "cluster/named_grants.h"

namespace berth {
namespace {

// The part of the GPU that other pods are known to hold, and the pod that holds most.
struct Held {
  int milli = 0;
  std::int64_t memory_mib = 0;
  const PodRecord* by = nullptr;
  int most = 0;
};

Held HeldOf(int gpu, std::string_view uid, const PodRecords& pods) {
  Held held;
  for (const auto& pod : pods) {
    if (pod->pod.id.uid == uid) continue;
    for (const DeviceGrant& grant : pod->placement.grants) {
      if (grant.gpu != gpu) continue;
      held.milli += grant.milli;
      held.memory_mib += grant.memory_mib;
      if (grant.milli <= held.most && held.by != nullptr) continue;
      held.by = pod.get();
      held.most = grant.milli;
    }
  }
  return held;
}

std::string WhyNotMigBeside(const Placement& said, std::string_view uid, const PodRecords& pods,
                            const MigSpec& spec) {
  for (const MigGrant& grant : said.mig) {
    const auto slot = SlotOf(spec, grant);
    if (!slot || grant.shared) continue;
    for (const auto& pod : pods) {
      if (pod->pod.id.uid == uid) continue;
      for (const MigGrant& other : pod->placement.mig) {
        const auto taken = SlotOf(spec, other);
        if (!taken || taken->gpu != slot->gpu || other.shared) continue;
        const MigSet room = spec.Room(slot->gpu, MigSet{1} << taken->placement);
        if ((room >> slot->placement & 1) != 0) continue;
        return NameOf(grant) + " is held by pod " + pod->pod.id.full_name();
      }
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
    if (static_cast<std::size_t>(grant.gpu) < node.gpus.size()) continue;
    return "the node has " + std::to_string(node.gpus.size()) + " GPUs";
  }
  return "";
}

// Why the pod cannot have the devices beside the others on the node; "" = it can.
std::string WhyNotBeside(const Placement& said, std::string_view uid, const PodRecords& pods,
                         const NodeSpec* node) {
  if (node != nullptr) {
    if (std::string why_not = WhyNotOnNode(said, *node); !why_not.empty()) return why_not;
  }
  for (const DeviceGrant& grant : said.grants) {
    if (grant.gpu < 0) continue;
    const Held held = HeldOf(grant.gpu, uid, pods);
    if (held.by == nullptr) continue;
    const std::int64_t memory_mib =
        node == nullptr ? 0 : node->gpus[static_cast<std::size_t>(grant.gpu)].memory_mib;
    const bool fits = held.milli + grant.milli <= kMilliPerGpu &&
                      (memory_mib == 0 || held.memory_mib + grant.memory_mib <= memory_mib);
    if (fits) continue;
    return "pod " + held.by->pod.id.full_name() + " holds " + std::to_string(held.most) +
           " milli of GPU " + std::to_string(grant.gpu);
  }
  if (node == nullptr || !node->mig.known()) return "";
  return WhyNotMigBeside(said, uid, pods, *node->mig);
}

// Whether other pods hold every device in `said` whole. Then an assumption may take its place: none
// of these GPUs is given away, even if the annotation is true and the other pod has left unnoticed.
bool IsHeldByOthers(const Placement& said, std::string_view uid, const PodRecords& pods,
                    const NodeSpec* node) {
  const auto holds = [uid](const PodRecord& pod, const DeviceGrant& wanted) {
    return pod.pod.id.uid != uid &&
           std::ranges::any_of(pod.placement.grants, [&wanted](const DeviceGrant& grant) {
             return grant.gpu == wanted.gpu && grant.milli == kMilliPerGpu &&
                    grant.memory_mib >= wanted.memory_mib;
           });
  };
  return said.mig.empty() && std::ranges::all_of(said.grants, [&](const DeviceGrant& grant) {
           const bool is_there =
               node == nullptr || static_cast<std::size_t>(grant.gpu) < node->gpus.size();
           return !is_there ||
                  std::ranges::any_of(pods, [&](const auto& pod) { return holds(*pod, grant); });
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
                                  const PodRecords& pods, const NodeSpec* node) {
  const std::string& uid = bound.pod.id.uid;
  const Placement said = WithIndices(bound.placement, node);
  const bool has =
      held != nullptr && held->placement.node == said.node && HasDevices(held->placement);
  // The devices that it named first, if these could not be believed yet.
  const auto entry = by_uid_.find(uid);
  const bool waits = entry != by_uid_.end() && entry->second.open;
  const Placement first_said = waits ? entry->second.said : bound.placement;
  const Placement first = WithIndices(first_said, node);
  const bool anew = has && held->said != nullptr && *held->said == bound.placement;
  const bool known = has && held->state == PodState::kBound && !waits && !anew &&
                     !HasNamedGrants(held->placement);  // it may only be said more exactly
  std::string why_not;
  if (known && !Specifies(held->placement, said)) {
    why_not = "it is known to have " + DevicesText(held->placement);
  } else if (!known && HasDevices(said)) {
    why_not = WhyNotBeside(said, uid, pods, node);
  } else if (waits) {
    why_not = "it said " + DevicesText(first) + " before";
  }
  if (why_not.empty()) {
    by_uid_.erase(uid);
    return said;
  }
  Placement believed = said;
  believed.grants = first.grants;
  believed.mig = first.mig;
  if (known) {
    believed.grants = held->placement.grants;
    believed.mig = held->placement.mig;
  } else if (IsHeldByOthers(first, uid, pods, node)) {
    const bool reserved = has && held->state == PodState::kReserved;
    believed.grants = reserved ? held->placement.grants : std::vector<DeviceGrant>();
  }
  std::string problem = "says " + DevicesText(said) + " on node " + said.node + ", but " + why_not;
  by_uid_[uid] = {{bound.pod.id, std::move(problem)}, first_said, !known};
  return believed;
}

std::optional<Placement> DeviceDisputes::DisputeUnknown(const PodRecord& held,
                                                        const NodeSpec& node) {
  const std::string why_not = WhyNotOnNode(held.placement, node);
  if (why_not.empty() || held.state != PodState::kBound || !held.annotated) return std::nullopt;
  Placement placement = held.placement;
  if (IsHeldByOthers(placement, held.pod.id.uid, {}, &node)) placement.grants.clear();
  std::string problem =
      "says " + DevicesText(held.placement) + " on node " + node.name + ", but " + why_not;
  by_uid_[held.pod.id.uid] = {{held.pod.id, std::move(problem)}, held.placement, true};
  return placement;
}

std::vector<std::string> DeviceDisputes::OpenOn(std::string_view node) const {
  std::vector<std::string> uids;
  for (const auto& [uid, entry] : by_uid_) {
    if (entry.open && entry.said.node == node) uids.push_back(uid);
  }
  return uids;
}

const Placement& DeviceDisputes::SaidOf(std::string_view uid) const {
  return by_uid_.find(uid)->second.said;
}

std::optional<Placement> DeviceDisputes::Reconsider(std::string_view uid, const PodRecord& held,
                                                    const PodRecords& pods, const NodeSpec* node) {
  const auto entry = by_uid_.find(uid);
  const Placement said = WithIndices(entry->second.said, node);
  Placement placement = held.placement;
  placement.grants = said.grants;
  placement.mig = said.mig;
  if (WhyNotBeside(said, uid, pods, node).empty()) {
    by_uid_.erase(entry);
  } else if (IsHeldByOthers(said, uid, pods, node)) {
    return std::nullopt;
  }  // else one of those that held it may have left, and another one may still hold a part
  if (placement == held.placement) return std::nullopt;
  return placement;
}

void DeviceDisputes::Forget(std::string_view uid) {
  const auto entry = by_uid_.find(uid);
  if (entry != by_uid_.end()) by_uid_.erase(entry);
}

std::vector<DeviceDispute> DeviceDisputes::List() const {
  std::vector<DeviceDispute> disputes;
  for (const auto& [uid, entry] : by_uid_) disputes.push_back(entry.dispute);
  return disputes;
}

std::string DevicesText(const Placement& placement) {
  std::string text;
  for (const DeviceGrant& grant : placement.grants) {
    text += (text.empty() ? "GPU " : ", GPU ") +
            (grant.uuid.empty() ? std::to_string(grant.gpu) : grant.uuid);
    if (grant.milli != kMilliPerGpu) text += " (" + std::to_string(grant.milli) + " milli)";
  }
  for (const MigGrant& grant : placement.mig) text += (text.empty() ? "" : ", ") + NameOf(grant);
  return text.empty() ? "no device" : text;
}

}  // namespace berth
