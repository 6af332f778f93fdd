// SPDX-License-Identifier: Apache-2.0
#include "cluster/gang.h"

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

}  // namespace berth
