// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_apis.h"

#include <algorithm>

#include "server/dialects/groups/gang_by.h"
#include "server/dialects/groups/pod_group.h"

namespace berth::dialects {

std::span<const GroupApi> GroupApis() {
  static const std::vector<GroupApi> apis = {
      {kCoscheduling, "scheduling.x-k8s.io", {"v1alpha1"}},
      {kKubernetes, "scheduling.k8s.io", {"v1", "v1beta1", "v1alpha3", "v1alpha2"}},
      {kVolcano, "scheduling.volcano.sh", {"v1beta1"}},
      {kKai, "scheduling.run.ai", {"v2alpha2"}}};
  return apis;
}

std::span<const ControllerApi> ControllerApis() {
  static const std::vector<ControllerApi> apis = {
      {kJob, "batch", {"v1"}, "jobs", "waiting for the list of jobs"},
      {kJobSet, "jobset.x-k8s.io", {"v1alpha2"}, "jobsets", "waiting for the list of jobsets"},
      {kLeaderWorkerSet,
       "leaderworkerset.x-k8s.io",
       {"v1"},
       "leaderworkersets",
       "waiting for the list of leaderworkersets"}};
  return apis;
}

std::string_view ConventionOf(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return "";
  for (const GroupApi& api : GroupApis()) {
    if (api_version.substr(0, slash) != api.group) continue;
    const std::string_view version = api_version.substr(slash + 1);
    return std::ranges::find(api.versions, version) == api.versions.end() ? "" : api.convention;
  }
  return "";
}

}  // namespace berth::dialects
