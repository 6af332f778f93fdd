// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/group_dialect.h"

#include "server/dialects/groups/pod_group.h"

namespace berth::dialects {
namespace {

class GroupDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "groups"; }
  [[nodiscard]] wire::DialectKeys keys() const override { return {.of_pods = GroupAnnotations()}; }
  void ReadGroup(const wire::PodParts& parts, const TopologyLevels& levels,
                 wire::GroupAsk& ask) const override {
    ask.sizes = ReadGang(parts, ask.gang);
    ask.domain = DomainAskOf(parts, levels);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeGroups() { return std::make_unique<GroupDialect>(); }

}  // namespace berth::dialects
