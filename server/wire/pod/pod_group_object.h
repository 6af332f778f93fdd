// SPDX-License-Identifier: Apache-2.0
//
// A PodGroup in a file, or the object of a controller: what has the minimum of a gang, read by the
// dialect whose API it is of.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

// Puts it into `groups`, under the namespace "default" where it has none. False: no dialect reads
// PodGroups of its apiVersion. problem: what of it cannot be read. Error: kInvalidArgument with the
// field. Requires: an object.
Result<bool> TakePodGroup(const Json& object, const PodRules& rules, PodGroups& groups,
                          std::string& problem);

// The same of an object of that kind which a controller makes gangs of. False: no dialect reads it.
Result<bool> TakeController(const Json& object, std::string_view kind, const PodRules& rules,
                            PodGroups& groups, std::string& problem);

}  // namespace berth::wire
