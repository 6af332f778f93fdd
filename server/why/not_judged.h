// SPDX-License-Identifier: Apache-2.0
//
// NotJudged: what of a pod kube-scheduler alone judges and Berth does not look at, by name:
//
//   volume claim data, host port 80, spread over zone, pod affinity over rack, ResourceClaim nic
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/wire/json/strict_json.h"

namespace berth::wire {

// Of one pod; of more the last one says how many.
inline constexpr std::size_t kMostNotJudged = 8;
inline constexpr std::size_t kMostNotJudgedBytes = 100;  // of each

// pod: a Pod, or the template of one. Of fields of other types nothing is said.
std::vector<std::string> NotJudged(const Json& pod);

// Adds one more, within the bounds.
void AddNotJudged(std::string what, std::vector<std::string>& all);

}  // namespace berth::wire
