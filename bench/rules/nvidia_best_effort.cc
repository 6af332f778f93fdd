// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/nvidia_best_effort.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace berth::replay {
namespace {

// Positions 0..f-1 are the free GPUs in order, f.. the pads; sets are masks of positions.
using Set = std::uint32_t;
constexpr int kImpossible = std::numeric_limits<int>::min() / 2;

class PartitionSearch {
 public:
  PartitionSearch(const std::vector<int>& scores, int gpus, const ChoiceRequest& request)
      : size_(request.size) {
    std::vector<int> members;
    for (GpuMask rest = request.free; rest != 0; rest &= rest - 1) {
      members.push_back(std::countr_zero(rest));
      const GpuMask lowest = rest & (~rest + 1);
      if ((request.required & lowest) != 0) required_ |= Set{1} << (members.size() - 1);
    }
    const int free = static_cast<int>(members.size());
    const int pads = (size_ - free % size_) % size_;
    positions_ = free + pads;
    pads_ = ((Set{1} << pads) - 1) << free;
    all_ = (Set{1} << positions_) - 1;
    scores_.assign(Index(positions_) * Index(positions_), 0);
    for (int a = 0; a < free; ++a) {
      for (int b = 0; b < free; ++b) {
        scores_[Index(a) * Index(positions_) + Index(b)] =
            scores[Index(members[Index(a)]) * Index(gpus) + Index(members[Index(b)])];
      }
    }
    best_.assign(std::size_t{1} << free, kUnset);
    members_ = std::move(members);
  }

  GpuMask Run() {
    if (Best(all_) <= kImpossible) return 0;
    Set chosen = 0;
    int chosen_score = -1;
    for (Set rest = all_; rest != 0;) {
      const Set set = FirstBestSet(rest);
      rest &= ~set;
      const bool fits = (set & pads_) == 0 && (set & required_) == required_;
      if (fits && Score(set) > chosen_score) {
        chosen = set;
        chosen_score = Score(set);
      }
    }
    GpuMask gpus = 0;
    for (; chosen != 0; chosen &= chosen - 1) {
      gpus |= GpuBit(members_[Index(std::countr_zero(chosen))]);
    }
    return gpus;
  }

 private:
  static constexpr int kUnset = -1;

  static std::size_t Index(int number) { return static_cast<std::size_t>(number); }

  // Pads go together, so what remains of the free GPUs says whether they are still there.
  int& Memo(Set rest) { return best_[rest & ~pads_]; }

  int ScoreWith(int position, Set set) const {
    int score = 0;
    for (; set != 0; set &= set - 1) {
      score += scores_[Index(position) * Index(positions_) + Index(std::countr_zero(set))];
    }
    return score;
  }
  int Score(Set set) const {
    int score = 0;
    for (; set != 0; set &= set - 1) score += ScoreWith(std::countr_zero(set), set & (set - 1));
    return score;
  }

  // Highest total of a partition of what remains.
  int Best(Set rest) {
    if (rest == 0) return 0;
    if (Memo(rest) != kUnset) return Memo(rest);
    const int lowest = std::countr_zero(rest);
    int best = kImpossible;
    Visit(Set{1} << lowest, lowest, 0, rest, [&](Set set, int score) {
      const int others = Best(rest & ~set);
      if (others > kImpossible && score + others > best) best = score + others;
    });
    return Memo(rest) = best;
  }

  Set FirstBestSet(Set rest) {
    const int best = Best(rest);
    const int lowest = std::countr_zero(rest);
    Set first = 0;
    Visit(Set{1} << lowest, lowest, 0, rest, [&](Set set, int score) {
      if (first == 0 && score + Best(rest & ~set) == best) first = set;
    });
    return first;
  }

  // Calls visit(set, score) for the sets that continue `set`, in lexicographic order of positions.
  template <class Callback>
  void Visit(Set set, int last, int score, Set rest, const Callback& visit) {
    if (std::popcount(set) == size_) {
      const bool some_pads = (set & pads_) != 0;
      const Set held = set & required_;
      if (held != 0 && (some_pads || held != required_)) return;
      visit(set, score);
      return;
    }
    for (int next = last + 1; next < positions_; ++next) {
      if ((rest >> next & 1) == 0) continue;
      if ((pads_ >> next & 1) != 0) {  // then all of them, and they come last
        const Set padded = set | pads_;
        if (std::popcount(padded) == size_) Visit(padded, next, score, rest, visit);
        return;
      }
      Visit(set | Set{1} << next, next, score + ScoreWith(next, set), rest, visit);
    }
  }

  int size_, positions_ = 0;
  Set required_ = 0, pads_ = 0, all_ = 0;
  std::vector<int> members_, scores_, best_;
};

}  // namespace

GpuMask NvidiaBestEffort(const std::vector<int>& scores, int gpus, const ChoiceRequest& request) {
  return PartitionSearch(scores, gpus, request).Run();
}

}  // namespace berth::replay
