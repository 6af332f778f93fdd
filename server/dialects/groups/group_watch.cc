// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_watch.h"

#include <string>
#include <string_view>
#include <vector>

#include "server/dialects/groups/group_apis.h"
#include "server/dialects/groups/pod_group_json.h"
#include "server/kube/table_sink.h"

namespace berth::dialects {
namespace {

class GroupWatch final : public kube::ClusterExtension {
 public:
  GroupWatch(const kube::ExtensionContext& context, PodGroups& groups,
             const TopologyLevels& levels) {
    for (const GroupApi& row : GroupApis()) {
      const auto decode = [convention = row.convention, &levels](const PaddedText& text,
                                                                 std::string& problem) {
        return DecodePodGroup(text, convention, levels, problem);
      };
      sinks_.push_back(std::make_unique<Sink>(groups.Of(row.convention), decode, NameOf(row),
                                              context.on_unreadable));
    }
  }

  std::vector<kube::WatchSource> Sources() override {
    std::vector<kube::WatchSource> sources;
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
      const GroupApi& row = GroupApis()[i];
      Sink& sink = *sinks_[i];
      sources.push_back(
          {.kind = {.name = NameOf(row),
                    .paths = kube::ApiPaths(row.group, row.versions, "podgroups"),
                    .optional = true,
                    .why_not_ready = "waiting for an answer to the list of podgroups"},
           .sink = sink,
           .unreadable = [&sink] { return sink.unreadable(); }});
    }
    return sources;
  }

 private:
  using Sink = kube::TableSink<PodGroupTable>;
  static std::string NameOf(const GroupApi& row) { return "podgroups." + row.group; }

  std::vector<std::unique_ptr<Sink>> sinks_;  // by GroupApis()
};

}  // namespace

std::unique_ptr<kube::ClusterExtension> WatchGroups(const kube::ExtensionContext& context,
                                                    PodGroups& groups,
                                                    const TopologyLevels& levels) {
  return std::make_unique<GroupWatch>(context, groups, levels);
}

}  // namespace berth::dialects
