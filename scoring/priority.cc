// SPDX-License-Identifier: Apache-2.0
#include "scoring/priority.h"

#include <array>
#include <numeric>

namespace berth {
namespace {

// Two passes without a branch per node; in between, the totals that occur, from the highest.
std::vector<std::uint8_t> ByTotal(std::span<const int> totals) {
  constexpr std::size_t kWordBits = 64, kWords = kMaxTotal / kWordBits + 1;
  std::array<std::uint64_t, kWords> occurs{};  // a bit per total
  for (const int total : totals) {
    const auto bit = static_cast<std::size_t>(total);
    occurs[bit / kWordBits] |= std::uint64_t{1} << bit % kWordBits;
  }
  std::array<std::uint8_t, kMaxTotal + 1> priority_of{};
  int priority = kMaxPriority;
  for (std::size_t word = kWords; word-- > 0 && priority > 0;) {
    for (; occurs[word] != 0 && priority > 0; --priority) {
      const std::uint64_t highest = std::bit_floor(occurs[word]);
      occurs[word] ^= highest;
      const auto bit = static_cast<std::size_t>(std::countr_zero(highest));
      priority_of[word * kWordBits + bit] = static_cast<std::uint8_t>(priority);
    }
  }
  std::vector<std::uint8_t> priorities(totals.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    priorities[i] = priority_of[static_cast<std::size_t>(totals[i])];
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

// The highest values that occur, each once, where they are told apart.
class HighestRanks {
 public:
  void Add(std::int64_t rank) {
    std::size_t at = count_;
    while (at > 0 && highest_[at - 1] < rank) --at;
    if (at == highest_.size() || (at > 0 && highest_[at - 1] == rank)) return;
    count_ = std::min(count_ + 1, highest_.size());
    const auto from = highest_.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = highest_.begin() + static_cast<std::ptrdiff_t>(count_);
    std::copy_backward(from, end - 1, end);
    *from = rank;
  }
  [[nodiscard]] std::uint8_t PriorityOf(std::int64_t rank) const {
    std::size_t at = 0;
    while (at < count_ && highest_[at] > rank) ++at;
    return static_cast<std::uint8_t>(kMaxPriority - static_cast<int>(at));
  }

 private:
  std::array<std::int64_t, kMaxPriority> highest_{};
  std::size_t count_ = 0;
};

}  // namespace

std::vector<std::uint8_t> ToPriorities(std::span<const int> totals,
                                       std::span<const int> emptiness) {
  HighestRanks highest;
  for (std::size_t i = 0; i < totals.size(); ++i) highest.Add(LevelRank(totals[i], emptiness[i]));
  std::vector<std::uint8_t> priorities(totals.size());
  for (std::size_t i = 0; i < totals.size(); ++i) {
    priorities[i] = highest.PriorityOf(LevelRank(totals[i], emptiness[i]));
  }
  return priorities;
}

std::vector<std::uint8_t> ToPriorities(std::span<const int> totals, TieRule ties) {
  return ties == TieRule::kFirst ? ByTotalThenPosition(totals) : ByTotal(totals);
}

}  // namespace berth
