// SPDX-License-Identifier: Apache-2.0
//
// A PodGroup in a file: an object that has the minimum of a gang, read by the dialect whose API it
// is of.
#pragma once

#include <string>

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

}  // namespace berth::wire
