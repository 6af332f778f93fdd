// SPDX-License-Identifier: Apache-2.0
#include "scoring/priority.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace berth {
namespace {

std::vector<std::uint8_t> ByTotal(std::span<const int> totals) {
  std::array<std::uint8_t, kMaxTotal + 1> level{};  // of each total; first only "it occurs"
  for (const int total : totals) level[static_cast<std::size_t>(total)] = 1;
  int next = kMaxPriority;
  for (std::size_t total = level.size(); total-- > 0;) {
    if (level[total] == 0) continue;
    level[total] = static_cast<std::uint8_t>(next);
    next = std::max(next - 1, 0);
  }
  std::vector<std::uint8_t> priorities(totals.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    priorities[i] = level[static_cast<std::size_t>(totals[i])];
  }
  return priorities;
}

std::vector<std::uint8_t> ByTotalThenPosition(std::span<const int> totals) {
  std::vector<std::size_t> order(totals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto told_apart =
      static_cast<std::ptrdiff_t>(std::min<std::size_t>(order.size(), kMaxPriority));
  std::partial_sort(order.begin(), order.begin() + told_apart, order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return totals[a] != totals[b] ? totals[a] > totals[b] : a < b;
                    });
  std::vector<std::uint8_t> priorities(totals.size(), 0);
  for (std::ptrdiff_t i = 0; i < told_apart; ++i) {
    priorities[order[static_cast<std::size_t>(i)]] = static_cast<std::uint8_t>(kMaxPriority - i);
  }
  return priorities;
}

}  // namespace

std::vector<std::uint8_t> ToPriorities(std::span<const int> totals, TieRule ties) {
  return ties == TieRule::kFirst ? ByTotalThenPosition(totals) : ByTotal(totals);
}

}  // namespace berth
