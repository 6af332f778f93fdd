// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods: the PodGroup objects of coscheduling, kube-scheduler, Volcano and KAI are
// watched, and the controllers that say how many pods they make: Jobs, JobSets, LeaderWorkerSets.
#pragma once

#include <memory>

#include "cluster/groups/pod_groups.h"
#include "scoring/earmarks/job_ends.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// References: they outlive the extension. job_ends: gets the deadlines of Jobs; nullptr: nobody
// asks for them.
std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups, const wire::PodRules& rules,
                                                    JobEndTable* job_ends);

}  // namespace berth::dialects
