// SPDX-License-Identifier: Apache-2.0
//
// The set of GPUs that an ask should get, by trying everything: all sets, and all orders of a set.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "topology/links/gpu_links.h"
#include "topology/links/set_table.h"

namespace berth::test {

class LinkOracle {
 public:
  explicit LinkOracle(const LinkMatrix& matrix)
      : matrix_(matrix), wiring_(WiringOf(matrix)), table_(wiring_) {}

  [[nodiscard]] bool Linked(GpuMask set) const {
    GpuMask reached = set & (~set + 1);
    for (int rounds = 0; rounds < matrix_.gpu_count(); ++rounds) {
      for (const int a : GpusOf(reached)) {
        for (const int b : GpusOf(set)) {
          if (matrix_.link(a, b).fabric != LinkType::kUnknown) reached |= GpuMask{1} << b;
        }
      }
    }
    return reached == set;
  }

  // The best, over all orders of the set's GPUs, of the worst link that the pattern uses.
  [[nodiscard]] int Best(GpuMask set, LinkPattern pattern) const {
    std::vector<int> order = GpusOf(set);
    int best = 0;
    do {
      best = std::max(best, Worst(order, pattern));
    } while (std::ranges::next_permutation(order).found);
    return best;
  }

  [[nodiscard]] bool Satisfies(GpuMask set, const LinkAsk& ask) const {
    if (ask.link == LinkWish::kRequired && !Linked(set)) return false;
    if (ask.numa == NumaWish::kRequired && (!NumaGroupsOf(matrix_) || wiring_.Span(set) > 1)) {
      return false;
    }
    return ask.min_megabytes_per_s == 0 || Best(set, LinkPattern::kRing) >= ask.min_megabytes_per_s;
  }

  // Requires: size >= 2.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, const LinkAsk& ask) const {
    GpuMask best = 0;
    std::array<int, 5> best_key{};
    for (GpuMask set = 1; set < GpuMask{1} << matrix_.gpu_count(); ++set) {
      if ((set & ~free) != 0 || std::popcount(set) != size || !Satisfies(set, ask)) continue;
      const bool cares = ask.link != LinkWish::kNone;
      const std::array<int, 5> key = {
          ask.numa == NumaWish::kPreferred ? -wiring_.Span(set) : 0,
          cares && ask.pattern != LinkPattern::kAny ? Best(set, ask.pattern) : 0,
          cares ? table_.quality(set) : 0, -wiring_.Span(set), table_.value(free ^ set)};
      if (best != 0 && key <= best_key) continue;
      best = set;
      best_key = key;
    }
    return best;
  }

 private:
  static std::vector<int> GpusOf(GpuMask set) {
    std::vector<int> gpus;
    for (; set != 0; set &= set - 1) gpus.push_back(std::countr_zero(set));
    return gpus;
  }

  [[nodiscard]] int Worst(const std::vector<int>& order, LinkPattern pattern) const {
    const std::size_t size = order.size();
    int worst = std::numeric_limits<int>::max();
    const auto use = [&](std::size_t a, std::size_t b) {
      worst = std::min(worst, wiring_.Between(order[a], order[b]));
    };
    if (pattern == LinkPattern::kGrid && size % 2 == 1) return 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (pattern == LinkPattern::kRing) use(i, (i + 1) % size);
      if (pattern == LinkPattern::kPairs && i % 2 == 1) use(i - 1, i);
      for (std::size_t j = 0; j < i && pattern == LinkPattern::kAllToAll; ++j) use(j, i);
      // Two rows, column by column: i is above i + 1, and left of i + 2.
      if (pattern == LinkPattern::kGrid && i % 2 == 1) use(i - 1, i);
      if (pattern == LinkPattern::kGrid && i >= 2) use(i - 2, i);
    }
    return worst;
  }

  const LinkMatrix matrix_;
  const Wiring wiring_;
  const SetTable table_;
};

}  // namespace berth::test
