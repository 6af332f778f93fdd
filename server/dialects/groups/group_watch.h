// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods: the PodGroup objects of coscheduling, kube-scheduler, Volcano and KAI are
// watched.
#pragma once

#include <memory>

#include "cluster/pod_groups.h"
#include "server/kube/watch_source.h"
#include "topology/domains/topology_levels.h"

namespace berth::dialects {

// References: they outlive the extension.
std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups,
                                                    const TopologyLevels& levels);

}  // namespace berth::dialects
