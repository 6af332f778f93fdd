// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_dialect.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/dialects/groups/gang_by.h"
#include "server/dialects/groups/pod_group.h"
#include "server/dialects/groups/pod_group_json.h"
#include "server/kube/watch/gang_history.h"

namespace berth::dialects {
namespace {

// A collection that says how many pods start together: PodGroups, in whose words pods name them (a
// convention of pod_group.h), or the objects of controllers that make the pods of gangs, by their
// kind (gang_by.h).
struct Api {
  std::string_view table;  // of PodGroups
  std::string group;
  std::vector<std::string> versions;  // that are read, the best first
  std::string resource = "podgroups";
  const char* why_not_ready = "waiting for the list of podgroups";

  [[nodiscard]] bool has_pod_groups() const { return resource == "podgroups"; }
  [[nodiscard]] bool Has(std::string_view api_version) const {
    return std::ranges::any_of(
        versions, [&](const std::string& version) { return api_version == group + "/" + version; });
  }
  [[nodiscard]] Result<PodGroup> Decode(const PaddedText& text, const wire::PodRules& rules,
                                        std::string& problem) const {
    return has_pod_groups() ? DecodePodGroup(text, table, rules.levels(), problem)
                            : DecodeController(text, table, rules, problem);
  }
};

std::span<const Api> Apis() {
  static const std::vector<Api> apis = {
      {kCoscheduling, "scheduling.x-k8s.io", {"v1alpha1"}},
      {kKubernetes, "scheduling.k8s.io", {"v1", "v1beta1", "v1alpha3", "v1alpha2"}},
      {kVolcano, "scheduling.volcano.sh", {"v1beta1"}},
      {kKai, "scheduling.run.ai", {"v2alpha2"}},
      {kJob, "batch", {"v1"}, "jobs", "waiting for the list of jobs"},
      {kJobSet, "jobset.x-k8s.io", {"v1alpha2"}, "jobsets", "waiting for the list of jobsets"},
      {kLeaderWorkerSet,
       "leaderworkerset.x-k8s.io",
       {"v1"},
       "leaderworkersets",
       "waiting for the list of leaderworkersets"},
      {kDisaggregatedSet,
       "disaggregatedset.x-k8s.io",
       {"v1"},
       "disaggregatedsets",
       "waiting for the list of disaggregatedsets"},
      {kPodGang,
       "scheduler.grove.io",
       {"v1alpha1"},
       "podgangs",
       "waiting for the list of podgangs"},
      {kCompositePodGroup,
       "scheduling.k8s.io",
       {"v1", "v1beta1", "v1alpha3"},
       "compositepodgroups",
       "waiting for the list of compositepodgroups"}};
  return apis;
}

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
  [[nodiscard]] Result<bool> TakeGroup(std::string_view api_version, std::string_view kind,
                                       const PaddedText& text, const wire::PodRules& rules,
                                       PodGroups& groups, std::string& problem) const override {
    const auto api = std::ranges::find_if(Apis(), [&](const Api& one) {
      return one.has_pod_groups() ? kind == "PodGroup" && one.Has(api_version) : kind == one.table;
    });
    if (api == Apis().end()) return false;
    BERTH_TRY(PodGroup group, api->Decode(text, rules, problem));
    groups.Of(api->table).Put(std::move(group));
    return true;
  }

 private:
  const std::vector<std::string> controllers_;  // as in GangsConfig
};

class GroupWatch final : public kube::ClusterExtension {
 public:
  GroupWatch(const kube::ExtensionContext& context, PodGroups& groups, const wire::PodRules& rules,
             JobEndTable* job_ends) {
    for (const Api& api : Apis()) {
      const auto decode = [&api, &rules](const PaddedText& text, std::string& problem) {
        return api.Decode(text, rules, problem);
      };
      sinks_.push_back(std::make_unique<Sink>(
          groups.Of(api.table), decode, api.resource + "." + api.group, context.on_unreadable));
      if (api.table == kJob && job_ends != nullptr) jobs_.emplace(*job_ends, *sinks_.back());
    }
  }

  std::vector<kube::WatchSource> Sources() override {
    std::vector<kube::WatchSource> sources;
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
      const Api& api = Apis()[i];
      Sink& own = *sinks_[i];
      kube::ObjectSink& to =
          api.table == kJob && jobs_ ? static_cast<kube::ObjectSink&>(*jobs_) : own;
      sources.push_back({.kind = {.name = api.resource + "." + api.group,
                                  .paths = kube::ApiPaths(api.group, api.versions, api.resource),
                                  .optional = true,
                                  .why_not_ready = api.why_not_ready},
                         .sink = to,
                         .unreadable = [&own] { return own.unreadable(); }});
    }
    return sources;
  }

 private:
  using Sink = kube::TableSink<PodGroupTable>;
  std::vector<std::unique_ptr<Sink>> sinks_;   // of Apis
  std::optional<kube::JobDeadlineSink> jobs_;  // in front of the sink of the Jobs
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeGroups(std::vector<std::string> controllers) {
  return std::make_unique<GroupDialect>(std::move(controllers));
}

std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups, const wire::PodRules& rules,
                                                    JobEndTable* job_ends) {
  return std::make_unique<GroupWatch>(context, groups, rules, job_ends);
}

}  // namespace berth::dialects
