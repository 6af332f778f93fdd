// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_watch.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/dialects/groups/controller_json.h"
#include "server/dialects/groups/group_apis.h"
#include "server/dialects/groups/pod_group_json.h"
#include "server/kube/watch/table_sink.h"

namespace berth::dialects {
namespace {

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

  // why_not_ready: a constant.
  kube::WatchSource Source(const char* why_not_ready) {
    return {
        .kind = {.name = name_, .paths = paths_, .optional = true, .why_not_ready = why_not_ready},
        .sink = sink_,
        .unreadable = [this] { return sink_.unreadable(); }};
  }

 private:
  const std::string name_;
  const std::vector<std::string> paths_;
  Sink sink_;
};

class GroupWatch final : public kube::ClusterExtension {
 public:
  GroupWatch(const kube::ExtensionContext& context, PodGroups& groups,
             const wire::PodRules& rules) {
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
    }
  }

  std::vector<kube::WatchSource> Sources() override {
    std::vector<kube::WatchSource> sources;
    for (const auto& of : groups_) {
      sources.push_back(of->Source("waiting for the list of podgroups"));
    }
    for (std::size_t i = 0; i < controllers_.size(); ++i) {
      sources.push_back(controllers_[i]->Source(ControllerApis()[i].why_not_ready));
    }
    return sources;
  }

 private:
  std::vector<std::unique_ptr<Watched>> groups_, controllers_;
};

}  // namespace

std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups,
                                                    const wire::PodRules& rules) {
  return std::make_unique<GroupWatch>(context, groups, rules);
}

}  // namespace berth::dialects
