// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_group_object.h"

#include "base/padded_text.h"

namespace berth::wire {

Result<bool> TakePodGroup(const Json& object, const PodRules& rules, PodGroups& groups,
                          std::string& problem) {
  const auto api = object.find("apiVersion");
  if (api == object.end() || !api->is_string()) return false;
  const auto version = api->get<std::string>();
  Json group = object;
  group["kind"] = "PodGroup";  // a list says the kind of its items once
  Json& metadata = group["metadata"];
  if (metadata.is_object()) {
    Json& space = metadata["namespace"];
    if (space.is_null() || space == "") space = "default";
  }
  const PaddedText text(JsonText(group));
  for (const Dialect& dialect : rules.dialects()) {
    if (!dialect.ReadsPodGroups(version)) continue;
    BERTH_TRY_STATUS(dialect.ReadPodGroup(version, text, rules.levels(), groups, problem));
    return true;
  }
  return false;
}

}  // namespace berth::wire
