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

// One collection: its sink, and where it is listed.
class Watched {
 public:
  using Sink = kube::TableSink<PodGroupTable>;

  Watched(const kube::ExtensionContext& context, PodGroupTable& table, Sink::Decode decode,
          const std::string& resource, const std::string& group,
          const std::vector<std::string>& versions)
      : name_(resource + "." + group),
        paths_(kube::ApiPaths(group, versions, resource)),
        sink_(table, std::move(decode), name_, context.on_unreadable) {}

  [[nodiscard]] Sink& sink() { return sink_; }
  // why_not_ready: a constant. to: its sink, or one that passes everything on to it.
  kube::WatchSource Source(const char* why_not_ready, kube::ObjectSink& to) {
    return {
        .kind = {.name = name_, .paths = paths_, .optional = true, .why_not_ready = why_not_ready},
        .sink = to,
        .unreadable = [this] { return sink_.unreadable(); }};
  }

 private:
  const std::string name_;
  const std::vector<std::string> paths_;
  Sink sink_;
};

class GroupWatch final : public kube::ClusterExtension {
 public:
  GroupWatch(const kube::ExtensionContext& context, PodGroups& groups, const wire::PodRules& rules,
             JobEndTable* job_ends) {
    for (const GroupApi& row : GroupApis()) {
      const auto decode = [convention = row.convention, &rules](const PaddedText& text,
                                                                std::string& problem) {
        return DecodePodGroup(text, convention, rules.levels(), problem);
      };
      groups_.push_back(std::make_unique<Watched>(context, groups.Of(row.convention), decode,
                                                  "podgroups", row.group, row.versions));
    }
    for (const ControllerApi& row : ControllerApis()) {
      const auto decode = [kind = row.kind, &rules](const PaddedText& text, std::string& problem) {
        return DecodeController(text, kind, rules, problem);
      };
      controllers_.push_back(std::make_unique<Watched>(context, groups.Of(row.kind), decode,
                                                       row.resource, row.group, row.versions));
      if (row.kind == kJob && job_ends != nullptr) {
        jobs_.emplace(*job_ends, controllers_.back()->sink());
      }
    }
  }

  std::vector<kube::WatchSource> Sources() override {
    std::vector<kube::WatchSource> sources;
    for (const auto& of : groups_) {
      sources.push_back(of->Source("waiting for the list of podgroups", of->sink()));
    }
    for (std::size_t i = 0; i < controllers_.size(); ++i) {
      const ControllerApi& api = ControllerApis()[i];
      kube::ObjectSink& own = controllers_[i]->sink();
      kube::ObjectSink& to = api.kind == kJob && jobs_ ? *jobs_ : own;
      sources.push_back(controllers_[i]->Source(api.why_not_ready, to));
    }
    return sources;
  }

 private:
  std::vector<std::unique_ptr<Watched>> groups_, controllers_;
  std::optional<kube::JobDeadlineSink> jobs_;  // in front of the sink of the Jobs
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
       "waiting for the list of leaderworkersets"},
      {kPodGang,
       "scheduler.grove.io",
       {"v1alpha1"},
       "podgangs",
       "waiting for the list of podgangs"}};
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

std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups, const wire::PodRules& rules,
                                                    JobEndTable* job_ends) {
  return std::make_unique<GroupWatch>(context, groups, rules, job_ends);
}

}  // namespace berth::dialects
