// SPDX-License-Identifier: Apache-2.0
//
// The JSON of Grove's PodGang (scheduler.grove.io) -> PodGroup: several groups of pods that start
// together.
//
//   spec.podgroups[].name, minReplicas     a role and its minimum (pods say it: pod_group.h)
//   ...packConstraint.required, preferred  levels by node label: of spec.topologyConstraint the
//                                          domain of all, of a pod group or of several of them
//                                          (topologyConstraintGroupConfigs) that of a part
//
// Ignored are a level that is preferred for a part, or that Berth does not know (Grove writes its
// narrowest one by itself), podReferences (pods name their PodGang), priorityClassName and
// reuseReservationRef.
#pragma once

#include <simdjson.h>

#include <span>
#include <string>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "topology/domains/topology_levels.h"

namespace berth::dialects {

// Without namespace and name.
PodGroup ReadPodGang(simdjson::ondemand::object spec, const TopologyLevels& levels);

// roles: as an object has them. parents: the names of those that stand for several others: no pod
// is of them.
void SetRoles(std::vector<GangRole> roles, std::span<const std::string> parents, PodGroup& group);

}  // namespace berth::dialects
