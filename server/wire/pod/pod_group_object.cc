// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_group_object.h"

#include "base/padded_text.h"

namespace berth::wire {
namespace {

// The object with its kind, which a list says once, and with a namespace.
PaddedText WholeObject(const Json& object, std::string_view kind) {
  Json whole = object;
  whole["kind"] = kind;
  Json& metadata = whole["metadata"];
  if (metadata.is_object()) {
    Json& space = metadata["namespace"];
    if (space.is_null() || space == "") space = "default";
  }
  return PaddedText(JsonText(whole));
}

}  // namespace

Result<bool> TakePodGroup(const Json& object, const PodRules& rules, PodGroups& groups,
                          std::string& problem) {
  const auto api = object.find("apiVersion");
  if (api == object.end() || !api->is_string()) return false;
  const auto version = api->get<std::string>();
  const PaddedText text = WholeObject(object, "PodGroup");
  for (const Dialect& dialect : rules.dialects()) {
    if (!dialect.ReadsPodGroups(version)) continue;
    BERTH_TRY_STATUS(dialect.ReadPodGroup(version, text, rules.levels(), groups, problem));
    return true;
  }
  return false;
}

Result<bool> TakeController(const Json& object, std::string_view kind, const PodRules& rules,
                            PodGroups& groups, std::string& problem) {
  const PaddedText text = WholeObject(object, kind);
  for (const Dialect& dialect : rules.dialects()) {
    BERTH_TRY(const bool is_read, dialect.ReadController(kind, text, rules, groups, problem));
    if (is_read) return true;
  }
  return false;
}

}  // namespace berth::wire
