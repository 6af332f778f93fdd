// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/gang.h"

#include <algorithm>

#include "base/dns_name.h"

namespace berth {

std::string GangId::full_name() const { return FullName(namespace_name, name); }

std::string GangId::text() const {
  if (empty()) return "";
  return convention.empty() ? full_name() : convention + ":" + full_name();
}

GangId GangId::Of(std::string_view text) {
  GangId id;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    id.name = text;
    return id;
  }
  id.name = text.substr(slash + 1);
  std::string_view before = text.substr(0, slash);
  if (const std::size_t colon = before.find(':'); colon != std::string_view::npos) {
    id.convention = before.substr(0, colon);
    before.remove_prefix(colon + 1);
  }
  id.namespace_name = before;
  return id;
}

int Gang::size() const {
  if (total) return *total;
  return minimum && *minimum > 1 ? *minimum : 0;
}

std::string_view CureOf(OneByOne why) {
  switch (why) {
    case OneByOne::kNo:
      return "";
    case OneByOne::kStatefulSet:
      return "a StatefulSet creates its pods one by one: set podManagementPolicy: Parallel";
    case OneByOne::kInOrder:
      return "its JobSet starts its jobs one by one: remove startupPolicy InOrder and dependsOn, "
             "or make each Job a gang (berth.dev/gang-by: batch.kubernetes.io/controller-uid)";
    case OneByOne::kExclusiveTopology:
      return "its annotation exclusive-topology starts the first pod before the others exist: "
             "use berth.dev/required-domain instead";
  }
  return "";
}

bool GangPart::Has(const std::string& role) const {
  return roles.empty() || std::ranges::binary_search(roles, role);
}

const GangPart* PartOf(const Gang& gang, const std::string& role) {
  const GangPart* narrowest = nullptr;
  for (const GangPart& part : gang.parts) {
    if (!part.preferred && part.Has(role)) narrowest = &part;
  }
  return narrowest;
}

bool RequiresParts(const Gang& gang) {
  return !std::ranges::all_of(gang.parts, &GangPart::preferred);
}

std::vector<GangRole> MissingRoles(const Gang& gang, const RoleCounts& there) {
  std::vector<GangRole> missing;
  if (there.contains("")) return missing;
  for (const GangRole& role : gang.roles) {
    const auto found = there.find(role.name);
    const std::int64_t pods = found == there.end() ? 0 : found->second;
    if (pods < role.minimum) {
      missing.push_back({role.name, static_cast<int>(role.minimum - pods)});
    }
  }
  return missing;
}

bool NeedsAll(const Gang& gang, const RoleCounts& there) {
  return gang.has_roles && (gang.roles.empty() || there.contains(""));
}

}  // namespace berth
