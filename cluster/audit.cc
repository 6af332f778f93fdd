// SPDX-License-Identifier: Apache-2.0
#include "cluster/audit.h"

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {
namespace {

void CountGrants(const Node& node, const PodRecords& pods, AuditReport& report) {
  struct Sum {
    std::int64_t milli = 0, memory_mib = 0;
  };
  const std::vector<GpuSpec>& gpus = node.spec().gpus;
  std::vector<Sum> sums(gpus.size());
  ForEachGpu(node.claimed(),
             [&](int gpu) { sums[static_cast<std::size_t>(gpu)].milli = kMilliPerGpu; });
  for (const auto& pod : pods) {
    for (const DeviceGrant& grant : pod->placement.grants) {
      const auto index = static_cast<std::size_t>(grant.gpu);
      if (grant.gpu < 0 || index >= gpus.size()) {
        ++report.unknown_devices;
        continue;
      }
      sums[index].milli += grant.milli;
      sums[index].memory_mib += grant.memory_mib;
    }
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool over_memory = gpus[i].memory_mib > 0 && sums[i].memory_mib > gpus[i].memory_mib;
    if (sums[i].milli > kMilliPerGpu || over_memory) ++report.double_grants;
  }
}

// Devices that are known to be given twice, or that the node does not have. Where the node's own
// allocator picks, the profile has to be there and no more is known.
void CountMigGrants(const MigSpec& spec, const PodRecords& pods, AuditReport& report) {
  std::vector<MigSet> taken(spec.gpus.size());
  for (const auto& pod : pods) {
    for (const MigGrant& grant : pod->placement.mig) {
      if (grant.shared) continue;
      const auto gpu = spec.PositionOf(grant.gpu);
      const auto row = spec.product ? spec.product->RowOf(grant.profile) : std::nullopt;
      const auto placement = row ? spec.product->PlacementAt(*row, grant.start) : std::nullopt;
      const bool there = !grant.exact()
                             ? row.has_value()
                             : gpu && placement && (spec.Free(*gpu, 0) >> *placement & 1) != 0;
      if (!there) {
        ++report.unknown_devices;
      } else if (grant.exact()) {
        if ((spec.Free(*gpu, taken[*gpu]) >> *placement & 1) == 0) ++report.double_grants;
        taken[*gpu] |= MigSet{1} << *placement;
      }
    }
  }
}

}  // namespace

AuditReport Audit(const ClusterState::Contents& contents, Instant now, Duration grace) {
  AuditReport report;
  std::map<std::string_view, PodRecords> by_node;  // contents.pods is sorted by UID
  for (const PodRecord& pod : contents.pods) {
    by_node[pod.placement.node].push_back(std::make_shared<const PodRecord>(pod));
    if (pod.state == PodState::kReserved && now - pod.expires_at > grace) {
      ++report.orphaned_reservations;
    }
  }
  for (NodeIndex i = 0; i < contents.snapshot->size(); ++i) {
    const Node& node = contents.snapshot->node(i);
    PodRecords& pods = by_node[node.spec().name];
    CountGrants(node, pods, report);
    if (node.spec().mig.known()) CountMigGrants(*node.spec().mig, pods, report);
    if (node !=
        Node(std::make_shared<const NodeSpec>(node.spec()), std::move(pods), node.claims())) {
      ++report.differences;
    }
  }
  return report;
}

}  // namespace berth
