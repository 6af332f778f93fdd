// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods, in our own words and in those of other schedulers and controllers (pod_group.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "scoring/earmarks/pod_ends.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// controllers: whose pods are gangs without saying so (GangsConfig).
std::unique_ptr<const wire::Dialect> MakeGroups(std::vector<std::string> controllers);

// Groups of pods: the PodGroup objects of coscheduling, kube-scheduler, Volcano and KAI are
// watched, and the controllers that say how many pods they make: Jobs, JobSets, LeaderWorkerSets,
// DisaggregatedSets, the PodGangs of Grove, the CompositePodGroups of Kubernetes.
// References: they outlive the extension. job_ends: gets the deadlines of Jobs; nullptr: nobody
// asks for them.
std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups, const wire::PodRules& rules,
                                                    JobEndTable* job_ends);

}  // namespace berth::dialects
