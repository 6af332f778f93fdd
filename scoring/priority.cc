// SPDX-License-Identifier: Apache-2.0
#include "scoring/priority.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace berth {
namespace {

std::vector<std::uint8_t> ByTotal(std::span<const int> totals) {
  std::array<int, kMaxPriority> best;  // the highest totals, each once, falling
  best.fill(-1);
  for (const int total : totals) {
    if (total <= best.back()) continue;
    const auto at = std::ranges::lower_bound(best, total, std::greater<>());
    if (*at == total) continue;
    std::shift_right(at, best.end(), 1);
    *at = total;
  }
  std::vector<std::uint8_t> priorities(totals.size(), 0);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i] < best.back()) continue;
    const auto at = std::ranges::lower_bound(best, totals[i], std::greater<>());
    priorities[i] = static_cast<std::uint8_t>(kMaxPriority - (at - best.begin()));
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
