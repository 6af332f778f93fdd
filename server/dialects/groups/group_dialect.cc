// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_dialect.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/groups/controller_json.h"
#include "server/dialects/groups/gang_by.h"
#include "server/dialects/groups/pod_group.h"
#include "server/dialects/groups/pod_group_json.h"

namespace berth::dialects {

namespace {

class GroupDialect final : public wire::Dialect {
 public:
  explicit GroupDialect(std::vector<std::string> controllers)
      : controllers_(std::move(controllers)) {}

  [[nodiscard]] std::string_view name() const override { return "groups"; }
  [[nodiscard]] wire::DialectKeys keys() const override { return {.of_pods = GroupAnnotations()}; }
  void ReadGroup(const wire::PodParts& parts, const TopologyLevels& levels,
                 wire::GroupAsk& ask) const override {
    ask.sizes = ReadGang(parts, ask.gang, controllers_);
    ask.role = RoleOf(parts, ask.gang);
    ask.leads = !ask.gang.empty() && LeadsGroup(parts);
    ask.domain = DomainAskOf(parts, levels);
  }
  [[nodiscard]] bool ReadsPodGroups(std::string_view api_version) const override {
    return !ConventionOf(api_version).empty();
  }
  [[nodiscard]] Status ReadPodGroup(std::string_view api_version, const PaddedText& text,
                                    const TopologyLevels& levels, PodGroups& groups,
                                    std::string& problem) const override {
    const std::string_view convention = ConventionOf(api_version);
    BERTH_TRY(PodGroup group, DecodePodGroup(text, convention, levels, problem));
    groups.Of(convention).Put(std::move(group));
    return {};
  }
  [[nodiscard]] Result<bool> ReadController(std::string_view kind, const PaddedText& text,
                                            const wire::PodRules& rules, PodGroups& groups,
                                            std::string& problem) const override {
    const auto apis = ControllerApis();
    const auto api = std::ranges::find(apis, kind, &ControllerApi::kind);
    if (api == apis.end()) return false;
    BERTH_TRY(PodGroup group, DecodeController(text, kind, rules, problem));
    groups.Of(api->kind).Put(std::move(group));
    return true;
  }

 private:
  const std::vector<std::string> controllers_;  // as in GangsConfig
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeGroups(std::vector<std::string> controllers) {
  return std::make_unique<GroupDialect>(std::move(controllers));
}

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
