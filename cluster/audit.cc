// SPDX-License-Identifier: Apache-2.0
#include "cluster/audit.h"

#include <bit>
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
  for (GpuMask held = node.claimed(); held != 0; held &= held - 1) {
    sums[static_cast<std::size_t>(std::countr_zero(held))].milli = kMilliPerGpu;
  }
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

}  // namespace

AuditReport Audit(const ClusterState::Contents& contents, Instant now, Duration grace) {
  AuditReport report;
  std::map<std::string_view, PodRecords> by_node;  // contents.pods is sorted by UID
  for (const PodRecord& pod : contents.pods) {
    by_node[pod.placement.node].push_back(std::make_shared<const PodRecord>(pod));
    if (pod.state == PodState::kReserved && pod.expires_at + grace < now) {
      ++report.orphaned_reservations;
    }
  }
  for (NodeIndex i = 0; i < contents.snapshot->size(); ++i) {
    const Node& node = contents.snapshot->node(i);
    PodRecords& pods = by_node[node.spec().name];
    CountGrants(node, pods, report);
    if (node !=
        Node(std::make_shared<const NodeSpec>(node.spec()), std::move(pods), node.claims())) {
      ++report.differences;
    }
  }
  return report;
}

}  // namespace berth
