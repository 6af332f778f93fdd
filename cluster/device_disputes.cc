// SPDX-License-Identifier: Apache-2.0
#include "cluster/device_disputes.h"

#include <algorithm>
#include <memory>

#include "cluster/mig_use.h"

namespace berth {
namespace {

std::string NameOf(const PodId& id) { return id.namespace_name + "/" + id.name; }

// What pods other than that one are known to hold of the grant's GPU, and who holds most.
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
        return NameOf(grant) + " is held by pod " + NameOf(pod->pod.id);
      }
    }
  }
  return "";
}

}  // namespace

bool HasDevices(const Placement& placement) {
  return !placement.grants.empty() || !placement.mig.empty();
}

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

std::string WhyNotOnNode(const Placement& said, const NodeSpec& node) {
  for (const DeviceGrant& grant : said.grants) {
    if (static_cast<std::size_t>(grant.gpu) < node.gpus.size()) continue;
    return "the node has " + std::to_string(node.gpus.size()) + " GPUs";
  }
  return "";
}

std::string WhyNotBeside(const Placement& said, std::string_view uid, const PodRecords& pods,
                         const NodeSpec* node) {
  if (node != nullptr) {
    if (std::string why_not = WhyNotOnNode(said, *node); !why_not.empty()) return why_not;
  }
  for (const DeviceGrant& grant : said.grants) {
    const Held held = HeldOf(grant.gpu, uid, pods);
    if (held.by == nullptr) continue;
    const std::int64_t memory_mib =
        node == nullptr ? 0 : node->gpus[static_cast<std::size_t>(grant.gpu)].memory_mib;
    const bool fits = held.milli + grant.milli <= kMilliPerGpu &&
                      (memory_mib == 0 || held.memory_mib + grant.memory_mib <= memory_mib);
    if (fits) continue;
    return "pod " + NameOf(held.by->pod.id) + " holds " + std::to_string(held.most) +
           " milli of GPU " + std::to_string(grant.gpu);
  }
  if (node == nullptr || !node->mig.known()) return "";
  return WhyNotMigBeside(said, uid, pods, *node->mig);
}

std::string DevicesText(const Placement& placement) {
  std::string text;
  for (const DeviceGrant& grant : placement.grants) {
    text += (text.empty() ? "GPU " : ", GPU ") + std::to_string(grant.gpu);
    if (grant.milli != kMilliPerGpu) text += " (" + std::to_string(grant.milli) + " milli)";
  }
  for (const MigGrant& grant : placement.mig) text += (text.empty() ? "" : ", ") + NameOf(grant);
  return text.empty() ? "no device" : text;
}

}  // namespace berth
