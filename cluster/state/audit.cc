// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/audit.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cluster/node/mig_use.h"

namespace berth {
namespace {

constexpr std::size_t kMostNamed = 20;

using Holders = std::vector<const PodRecord*>;

void Name(const Node& node, int gpu, const Holders& holders, std::vector<std::string>& texts) {
  if (texts.size() >= kMostNamed) return;
  std::string text = "GPU " + std::to_string(gpu) + " of node " + node.spec().name + ":";
  for (const PodRecord* const pod : holders) {
    text.append(pod == holders.front() ? " " : ", ").append(pod->pod.id.full_name());
  }
  texts.push_back(std::move(text));
}

void CountDouble(const Node& node, int gpu, const Holders& holders, AuditReport& report) {
  ++report.double_grants;
  Name(node, gpu, holders, report.double_granted);
}

// Whether the kubelet gave somebody the whole GPU, whatever shares of it others have.
bool IsGivenOverShares(const Holders& holders) {
  bool given = false, shared = false;
  for (const PodRecord* const pod : holders) {
    shared = shared || pod->pod.shape.is_share();
    given = given || (!pod->pod.shape.is_share() && pod->evidence() != Evidence::kPlan);
  }
  return given && shared;
}

void CountGrants(const Node& node, const PodRecords& pods, AuditReport& report) {
  struct Sum {
    std::int64_t milli = 0, memory_mib = 0;
    Holders holders = {};
  };
  const std::vector<GpuSpec>& gpus = node.spec().gpus;
  std::vector<Sum> sums(gpus.size());
  ForEachGpu(node.claimed(),
             [&](int gpu) { sums[static_cast<std::size_t>(gpu)].milli = kMilliPerGpu; });
  for (const auto& pod : pods) {
    if (node.IsHeldByClaim(pod->pod)) continue;  // its claim is counted
    for (const DeviceGrant& grant : pod->placement.grants) {
      const GpuSpec* const gpu = node.spec().FindGpu(grant.gpu);
      if (gpu == nullptr) {
        // A name may become known with the node's UUIDs.
        if (grant.uuid.empty()) ++report.unknown_devices;
        continue;
      }
      if (!node.HasOf(*pod, grant)) continue;  // another pod was given it, and counts there
      Sum& sum = sums[static_cast<std::size_t>(gpu - gpus.data())];
      sum.milli += grant.milli;
      sum.memory_mib += grant.memory_mib;
      sum.holders.push_back(pod.get());
    }
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool over_memory = gpus[i].memory_mib > 0 && sums[i].memory_mib > gpus[i].memory_mib;
    const bool over_users =
        gpus[i].most_users > 0 && std::ssize(sums[i].holders) > gpus[i].most_users;
    if (sums[i].milli <= kMilliPerGpu && !over_memory && !over_users) continue;
    if (std::ranges::any_of(sums[i].holders, [](const PodRecord* pod) {
          return pod->pod.shape.share_mode == ShareMode::kReserved;
        })) {
      continue;
    }
    if (IsGivenOverShares(sums[i].holders)) {
      ++report.given_over_shares;
      Name(node, static_cast<int>(i), sums[i].holders, report.over_shares);
    } else {
      CountDouble(node, static_cast<int>(i), sums[i].holders, report);
    }
  }
}

// Whether more is held than there is once the unknown devices are assumed somewhere.
bool IsOverfull(const Node& node) {
  if (node.spec().places.count > 0) return node.free_places() < 0;
  return node.unattributed() > 0 && std::ranges::any_of(node.gpus(), [](const GpuFree& free) {
           return free.milli < 0 || free.memory_mib < 0;
         });
}

void CountOverfull(const Node& node, const PodRecords& pods, AuditReport& report) {
  if (!IsOverfull(node)) return;
  ++report.overfull_nodes;
  if (report.overfull.size() >= kMostNamed) return;
  const bool places = node.spec().places.count > 0;
  std::string text =
      "node " + node.spec().name + " has " +
      std::to_string(places ? node.spec().places.count : static_cast<int>(node.gpus().size())) +
      (places ? " GPU replicas; pods on it: " : " GPUs; bound past Berth: ");
  std::size_t named = 0;
  for (const auto& pod : pods) {
    if (!(places ? pod->pod.shape.wants_gpu() : pod->unattributed())) continue;
    if (++named > kMostNamed) break;
    text += (named == 1 ? "" : ", ") + pod->pod.id.full_name();
  }
  report.overfull.push_back(std::move(text));
}

Holders HoldersOf(const MigSpec& spec, std::size_t gpu, const PodRecords& pods) {
  Holders holders;
  for (const auto& pod : pods) {
    const bool is_there = std::ranges::any_of(pod->placement.mig, [&](const MigGrant& grant) {
      const auto slot = SlotOf(spec, grant);
      return slot && slot->gpu == gpu;
    });
    if (is_there) holders.push_back(pod.get());
  }
  return holders;
}

// Devices that are known to be given twice, or that the node does not have. If the node's own
// allocator picks, only the profile is known and has to exist.
void CountMigGrants(const Node& node, const PodRecords& pods, AuditReport& report) {
  const MigSpec& spec = *node.spec().mig;
  std::vector<MigSet> taken(spec.gpus.size());
  if (node.claims() != nullptr) {
    for (const MigSlot& slot : SlotsOfClaims(spec, *node.claims())) {
      taken[slot.gpu] |= MigSet{1} << slot.placement;
    }
  }
  for (const auto& pod : pods) {
    for (const MigGrant& grant : pod->placement.mig) {
      if (grant.shared) continue;
      const auto slot = SlotOf(spec, grant);
      const bool there =
          grant.exact() ? slot.has_value() : spec.product && spec.product->RowOf(grant.profile);
      if (!there) ++report.unknown_devices;
      if (!slot) continue;
      if ((spec.Room(slot->gpu, taken[slot->gpu]) >> slot->placement & 1) == 0) {
        CountDouble(node, spec.gpus[slot->gpu].index, HoldersOf(spec, slot->gpu, pods), report);
      }
      taken[slot->gpu] |= MigSet{1} << slot->placement;
    }
  }
}

}  // namespace

AuditReport Audit(const ClusterState::Contents& contents, Instant now, Duration grace) {
  AuditReport report;
  std::map<std::string_view, PodRecords> by_node;  // contents.pods is sorted by UID
  for (const PodRecord& pod : contents.pods) {
    by_node[pod.placement.node].push_back(std::make_shared<const PodRecord>(pod));
    if (pod.state == PodState::kReserved && now - pod.settle_after > grace) {
      ++report.orphaned_reservations;
    }
  }
  for (NodeIndex i = 0; i < contents.snapshot->size(); ++i) {
    const Node& node = contents.snapshot->node(i);
    PodRecords& pods = by_node[node.spec().name];
    CountGrants(node, pods, report);
    CountOverfull(node, pods, report);
    if (node.spec().mig.known()) CountMigGrants(node, pods, report);
    if (node !=
        Node(std::make_shared<const NodeSpec>(node.spec()), std::move(pods), node.claims())) {
      ++report.differences;
    }
  }
  return report;
}

}  // namespace berth
