// SPDX-License-Identifier: Apache-2.0
//
// MembersOf (cluster/values/describe.h) of nodes. Their roles: which node it is, what decides
// which pods fit there, and what else is shown of it.
#pragma once

#include "cluster/node/node.h"
#include "cluster/values/describe.h"

namespace berth {

inline constexpr std::int64_t kMostGpuPrice = 1'000'000;  // in an hour, in any currency

template <OneOf<GpuSpec> V>
constexpr auto MembersOf(V& value) {
  auto& [uuid, memory_mib, healthy, most_users, cores, unit_mib, capability, foreign] = value;
  return std::tuple(OfRole<Role::kIdentity>(uuid, AtFront("uuid")),
                    OfKind(memory_mib, AtFront("memory_mib")), OfKind(healthy, AtFront("healthy")),
                    OfKind(most_users, WhenSet("most_users", kMaxGpuPlaces)),
                    OfKind(cores, WhenSet("cores", kMostCores, 100)),
                    OfKind(unit_mib, WhenSet("unit_mib", kMostMemoryUnit, 1)),
                    OfKind(capability, WhenSet("capability", kMostCapability)),
                    OfKind(foreign, WhenSet("foreign")));
}

template <OneOf<GpuPlaces> V>
constexpr auto MembersOf(V& value) {
  auto& [count, foreign, gpus, memory_mib, sharing, uuids, unwell, several] = value;
  return std::tuple(
      OfKind(count, AtFront("count", kMaxGpuPlaces)), OfKind(foreign, AtFront("foreign")),
      OfKind(gpus, WhenSet("gpus", kMaxGpuPlaces)), OfKind(memory_mib, WhenSet("memory_mib")),
      OfKind(sharing, WhenSet("sharing")), OfKind(uuids, WhenSet("uuids")),
      OfKind(unwell, WhenSet("unwell", kMaxGpusPerNode - 1)), OfKind(several, WhenSet("several")));
}

template <OneOf<ClaimedGpu> V>
constexpr auto MembersOf(V& value) {
  auto& [claim, device, uuid, index, profile, start, pod, shared, parts] = value;
  return std::tuple(
      OfKind(claim, AtFront("claim")), OfKind(device, AtFront("device")),
      OfKind(uuid, WhenSet("uuid")), OfKind(index, WhenSet("index", kMaxGpusPerNode - 1)),
      OfKind(profile, WhenSet("profile")), OfKind(start, WhenSet("start", kMaxGpusPerNode - 1)),
      OfKind(pod, WhenSet("pod")), OfKind(shared, WhenSet("shared")),
      OfKind(parts, WhenSet("parts_milli")));
}

template <OneOf<GpusByName> V>
constexpr auto MembersOf(V& value) {
  auto& [resource, order] = value;
  return std::tuple(OfRole<Role::kIdentity>(resource, AtFront("resource")),
                    OfKind(order, AtFront("order", kMaxGpusPerNode - 1)));
}

template <OneOf<TopologyManager> V>
constexpr auto MembersOf(V& value) {
  auto& [policy, by_pod] = value;
  return std::tuple(OfKind(policy, AtFront("policy")), OfKind(by_pod, AtFront("by_pod")));
}

template <OneOf<NodeSpec> V>
constexpr auto MembersOf(V& value) {
  auto& [name, gpu_model, cpu_milli, memory_bytes, ready, gpus, gpu_models, ephemeral_bytes, labels,
         taints, soft_taints, links, mig, places, gpu_resource, share_agent, agents, part_agent,
         refused_asks, ready_since, gpu_condition, named_gpus_condition, gpu_contradiction,
         passed_over, agent_lacks, traits, gpu_price, by_claims, beside, others, other_gpus,
         missing, most_pods, gpus_are_parts, agent_serves_all, part_agent_ready, share_isolation,
         shares_need_uuids, refuses_gpu_pods, gpus_to_come, carries_out, topology_manager] = value;
  return std::tuple(
      OfRole<Role::kIdentity>(name, AtFront("name")), OfKind(gpu_model, AtFront("gpu_model")),
      OfKind(cpu_milli, AtFront("cpu_milli")), OfKind(memory_bytes, AtFront("memory_bytes")),
      OfKind(ready, AtFront("ready")), OfKind(gpus, AtFront("gpus")),
      OfKind(gpu_models, WhenSet("gpu_models")),
      OfKind(ephemeral_bytes, WhenSet("ephemeral_bytes")), OfKind(places, WhenSet("places")),
      OfKind(missing, WhenSet("missing", kMaxGpuPlaces)),
      OfKind(gpu_resource, WhenSet("gpu_resource")),
      OfKind(gpus_are_parts, WhenSet("gpus_are_parts")),
      OfKind(share_agent, WhenSet("share_agent")),
      OfKind(agent_serves_all, WhenSet("agent_serves_all")),
      OfKind(part_agent, WhenSet("part_agent")),
      OfKind(part_agent_ready, WhenSet("part_agent_ready")),
      OfKind(refuses_gpu_pods, WhenSet("refuses_gpu_pods")),
      OfKind(refused_asks, WhenSet("refused_asks")),
      OfKind(gpu_condition, WhenSet("gpu_condition")),
      OfKind(named_gpus_condition, WhenSet("named_gpus_condition")),
      OfKind(gpu_contradiction, WhenSet("gpu_contradiction")),
      OfRole<Role::kShown>(passed_over, WhenSet("passed_over")),
      OfRole<Role::kShown>(agent_lacks, WhenSet("agent_lacks")),
      OfKind(gpus_to_come, WhenSet("gpus_to_come")), OfKind(traits, WhenSet("traits")),
      OfKind(gpu_price, WhenSet("gpu_price", kMostGpuPrice)),
      OfKind(share_isolation, WhenSet("shares_keep_memory")), OfKind(labels, WhenSet("labels")),
      OfKind(carries_out, WhenSet("carries_out")),
      OfKind(by_claims, WhenSet("by_claims", kMaxGpusPerNode - 1)),
      OfKind(most_pods, WhenSet("most_pods", std::numeric_limits<int>::max())),
      OfKind(others, WhenSet("others")), OfKind(other_gpus, WhenSet("other_gpus")),
      OfKind(topology_manager, WhenSet("topology_manager")), OfKind(beside), OfKind(taints),
      OfKind(soft_taints), OfKind(links), OfKind(mig), OfKind(agents),
      OfKind(shares_need_uuids, WhenSet("shares_need_uuids")), OfRole<Role::kShown>(ready_since));
}

}  // namespace berth
