// SPDX-License-Identifier: Apache-2.0
//
// The JSON of the PodGroup objects of other schedulers -> PodGroup. How many pods at least:
//
//   scheduling.x-k8s.io, scheduling.volcano.sh, scheduling.run.ai   spec.minMember
//   scheduling.k8s.io                            spec.schedulingPolicy.gang.minCount
//
// For how long the first pods wait: spec.scheduleTimeoutSeconds of scheduling.x-k8s.io.
//
// Where there is no such number each of the pods may start alone, as where it is 1: Spark's groups,
// whose driver starts the rest, say 1 on purpose.
//
// How near to each other: the annotations of pod_group.h, on the object instead of its pods; else
// Volcano's spec.networkTopology (mode, highestTierAllowed) and KAI's spec.topologyConstraint
// (requiredTopologyLevel, preferredTopologyLevel). Constraints of scheduling.k8s.io are seen to by
// kube-scheduler itself, which asks about the nodes of one domain at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "topology/domains/topology_levels.h"

namespace berth::dialects {

// convention: one of those of pod_group.h. problem: what cannot be read. A number that makes no
// sense, a level that is required and not known, and a demand that nobody here meets are the
// group's refusal too; without a level that is only preferred the group does. Error:
// kInvalidArgument for what is not JSON, not a PodGroup, has no name or no number where one is to
// be.
Result<PodGroup> DecodePodGroup(const PaddedText& text, std::string_view convention,
                                const TopologyLevels& levels, std::string& problem);

}  // namespace berth::dialects
