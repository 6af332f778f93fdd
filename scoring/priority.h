// SPDX-License-Identifier: Apache-2.0
//
// From totals to the extender protocol's priorities 0..10.
//
// Eleven levels are all that kube-scheduler reads, so they go to the best nodes: the best total
// gets 10, the next lower one 9, and so on; from the eleventh on 0. Order is kept (never reversed,
// equal totals stay equal under TieRule::kEqual), and the choice of the highest is the same as on
// the full scale.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scoring/profile.h"

namespace berth {

constexpr int kMaxPriority = 10;
constexpr int kMaxTotal = 10'000;  // totals are the weighted mean score in hundredths

// One priority per total. Requires: 0 <= total <= kMaxTotal; under kFirst the totals are in name
// order.
std::vector<std::uint8_t> ToPriorities(std::span<const int> totals, TieRule ties);

}  // namespace berth
