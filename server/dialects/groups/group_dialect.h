// SPDX-License-Identifier: Apache-2.0
//
// Groups of pods, in our own words and in those of other schedulers and controllers (pod_group.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "scoring/earmarks/job_ends.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// controllers: whose pods are gangs without saying so (GangsConfig).
std::unique_ptr<const wire::Dialect> MakeGroups(std::vector<std::string> controllers);

// The APIs that have PodGroups, and in whose words their pods name them (docs/gangs.md).
struct GroupApi {
  std::string_view convention;  // one of those of pod_group.h
  std::string group;
  std::vector<std::string> versions;  // that are read, the best first
};

std::span<const GroupApi> GroupApis();

// The APIs of controllers that make the pods of gangs, or say how many there are (gang_by.h).
struct ControllerApi {
  std::string_view kind;
  std::string group;
  std::vector<std::string> versions;
  std::string resource;
  const char* why_not_ready;  // while its first list is not answered
};

std::span<const ControllerApi> ControllerApis();

// The convention of an "apiVersion" as objects say it; "" = no such API or version is read.
std::string_view ConventionOf(std::string_view api_version);

// Groups of pods: the PodGroup objects of coscheduling, kube-scheduler, Volcano and KAI are
// watched, and the controllers that say how many pods they make: Jobs, JobSets, LeaderWorkerSets,
// the PodGangs of Grove.

// References: they outlive the extension. job_ends: gets the deadlines of Jobs; nullptr: nobody
// asks for them.
std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups, const wire::PodRules& rules,
                                                    JobEndTable* job_ends);

}  // namespace berth::dialects
