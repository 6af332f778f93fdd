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

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "server/wire/pod/pod_rules.h"
#include "topology/domains/domain_tree.h"

namespace berth::dialects {

// convention: one of those of pod_group.h. problem: what cannot be read. A number that makes no
// sense, a level that is required and not known, and a demand that nobody here meets are the
// group's refusal too; without a level that is only preferred the group does. Error:
// kInvalidArgument for what is not JSON, not a PodGroup, has no name or no number where one is to
// be.
Result<PodGroup> DecodePodGroup(const PaddedText& text, std::string_view convention,
                                const TopologyLevels& levels, std::string& problem);

// The JSON of Jobs, JobSets, LeaderWorkerSets and PodGangs -> PodGroup: how many of their pods have
// to start together.
//
//   batch Job        the smaller of spec.parallelism and spec.completions; those that have
//                    succeeded need no pod any more
//   JobSet           the pods of all replicated jobs together; their Jobs as above, but for what
//                    has succeeded: its status may be that of the attempt before. Jobs that others
//                    wait for to end (dependsOn, Complete) are left out
//   LeaderWorkerSet  spec.leaderWorkerTemplate.size; 1 where spec.startupPolicy is LeaderReady: the
//                    leader starts alone
//   DisaggregatedSet a group of each role together, as of its LeaderWorkerSet, in one domain of the
//                    level spec.placementPolicy.topology (its controller says it as affinity to
//                    kube-scheduler too). Roles with spec.scaling.mode External may have none
//
// 1, which means that each may start alone, also where none of the pods asks for GPUs.
//
//   PodGang          see below
//
// A JobSet that starts jobs with GPUs in order (spec.startupPolicy, dependsOn) says so
// (PodGroup::one_by_one).

// kind: one of those of gang_by.h. problem: what of it cannot be used, as DecodePodGroup. Error:
// kInvalidArgument for what is not JSON, not of that kind, or has no name.
Result<PodGroup> DecodeController(const PaddedText& text, std::string_view kind,
                                  const wire::PodRules& rules, std::string& problem);

// The JSON of Grove's PodGang (scheduler.grove.io) -> PodGroup: several groups of pods that start
// together.
//
//   spec.podgroups[].name, minReplicas     a role and its minimum (pods say it: pod_group.h)
//   ...packConstraint.required, preferred  levels by node label: of spec.topologyConstraint the
//                                          domain of all, of a pod group or of several of them
//                                          (topologyConstraintGroupConfigs) that of a part
//
// Ignored are a preferred level that Berth does not know (Grove writes its narrowest one by
// itself), podReferences (pods name their PodGang), priorityClassName and reuseReservationRef.

// Without namespace and name.
PodGroup ReadPodGang(simdjson::ondemand::object spec, const TopologyLevels& levels);

// The JSON of a CompositePodGroup (scheduling.k8s.io) -> PodGroup: others are parts of it, and it
// may be one itself (parentCompositePodGroupName, as PodGroups say it).
//
//   spec.schedulingPolicy.gang.minGroupCount   so many of its groups start together
//   spec.schedulingConstraints.topology[].key  the level of the domain in which all below it are,
//                                              by node label; so it is of a PodGroup with a parent
//
// kube-scheduler sees to these itself, so a key that is no level is its alone.

}  // namespace berth::dialects
