// SPDX-License-Identifier: Apache-2.0
#include "topology/links/set_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>

#include "base/check.h"

namespace berth {
namespace {

// Inside the table sets are indices; 16 bits are enough for them.
using Set = std::uint32_t;

constexpr int kKeptChoices = 8;  // GPUs up to which all choices are kept
constexpr int kMillion = 1'000'000;

constexpr double kRingWeight = 0.6, kBisectionWeight = 0.25, kAggregateWeight = 0.15;
constexpr double kMeanWeight = 0.1;

std::size_t Index(int number) { return static_cast<std::size_t>(number); }
Set Lowest(Set set) { return set & (~set + 1); }

// Calls visit(subset) for every subset of `set` with `size` members, lowest indices first.
template <class Visit>
void ForEachSubset(Set set, int size, Visit visit) {
  // Positions are counted in a dense mask and spread over the set by two tables of a byte each.
  std::array<Set, 256> low, high;  // only what is read is written: this is the hot path
  low[0] = high[0] = 0;
  std::array<Set, kMaxTableGpus> bits{};
  const int members = std::popcount(set);
  for (int i = 0; i < members; ++i, set &= set - 1) bits[Index(i)] = Lowest(set);
  const Set low_count = Set{1} << std::min(members, 8);
  const Set high_count = Set{1} << std::max(members - 8, 0);
  for (Set i = 1; i < low_count; ++i) {
    low[i] = low[i & (i - 1)] | bits[Index(std::countr_zero(i))];
  }
  for (Set i = 1; i < high_count; ++i) {
    high[i] = high[i & (i - 1)] | bits[Index(8 + std::countr_zero(i))];
  }
  if (size == 0) return visit(Set{0});
  const Set end = Set{1} << members;
  for (Set dense = (Set{1} << size) - 1; dense < end;) {
    visit(low[dense & 255] | high[dense >> 8]);
    const Set step = Lowest(dense);  // Gosper: the next mask with as many bits
    const Set ripple = dense + step;
    dense = (((ripple ^ dense) >> 2) / step) | ripple;
  }
}

// C(n, k) for 0 <= k <= n <= 16.
double Choices(int n, int k) {
  double choices = 1;
  for (int i = 1; i <= k; ++i) choices = choices * (n - k + i) / i;
  return choices;
}

constexpr int kUnit = 10'000;  // utility 1
constexpr double kNextWeight = 0.7, kSpanWeight = 0.03;

}  // namespace

SetTable::SetTable(Wiring wiring, const SizeMix& mix)
    : wiring_(std::move(wiring)), sets_(std::size_t{1} << wiring_.gpus) {
  BERTH_CHECK(wiring_.gpus <= kMaxTableGpus);
  BuildAggregates();
  BuildRings();
  BuildBisections();
  BuildRanks();
  BuildValues(mix);
  if (wiring_.gpus <= kKeptChoices) BuildChoices();
}

void SetTable::BuildAggregates() {
  aggregate_.assign(sets_, 0);
  for (Set set = 1; set < sets_; ++set) {
    const int lowest = std::countr_zero(set);
    const Set rest = set & (set - 1);
    int total = aggregate_[rest];
    for (Set others = rest; others != 0; others &= others - 1) {
      total += wiring_.Between(lowest, std::countr_zero(others));
    }
    aggregate_[set] = total;
  }
}

// Per bandwidth that occurs, fastest first: which sets have a Hamiltonian cycle of links that are
// at least as fast? ends[S] are the GPUs at which a path through all of S can end that began at its
// lowest GPU.
void SetTable::BuildRings() {
  ring_.assign(sets_, 0);
  std::set<int, std::greater<>> levels;
  for (int a = 0; a < wiring_.gpus; ++a) {
    for (int b = 0; b < a; ++b) levels.insert(wiring_.Between(a, b));
  }
  std::vector<std::uint16_t> ends(sets_);
  std::array<Set, kMaxTableGpus> linked{};
  for (const int level : levels) {
    for (int a = 0; a < wiring_.gpus; ++a) {
      linked[Index(a)] = 0;
      for (int b = 0; b < wiring_.gpus; ++b) {
        if (a != b && wiring_.Between(a, b) >= level) linked[Index(a)] |= Set{1} << b;
      }
    }
    for (Set set = 1; set < sets_; ++set) {
      const Set lowest = Lowest(set);
      Set reached = set == lowest ? lowest : 0;
      for (Set rest = set ^ lowest; rest != 0; rest &= rest - 1) {
        const Set end = Lowest(rest);
        if ((ends[set ^ end] & linked[Index(std::countr_zero(end))]) != 0) reached |= end;
      }
      ends[set] = static_cast<std::uint16_t>(reached);
      const bool closed = (reached & linked[Index(std::countr_zero(lowest))]) != 0;
      if (closed && ring_[set] == 0) ring_[set] = level;
    }
  }
}

void SetTable::BuildBisections() {
  bisection_.assign(sets_, 0);
  for (Set set = 1; set < sets_; ++set) {
    const Set rest = set & (set - 1);  // the lowest GPU is always in the other half
    const int members = std::popcount(set);
    if (members < 2) continue;
    int inside = 0;
    for (Set half = rest; half != 0; half = (half - 1) & rest) {
      const int count = std::popcount(half);
      if (count != members / 2 && count != (members + 1) / 2) continue;
      inside = std::max(inside, aggregate_[half] + aggregate_[set ^ half]);
    }
    bisection_[set] = aggregate_[set] - inside;
  }
}

void SetTable::BuildRanks() {
  std::array<int, kMaxTableGpus + 1> best_bisection{}, best_aggregate{};
  for (Set set = 1; set < sets_; ++set) {
    const std::size_t size = Index(std::popcount(set));
    best_ring_[size] = std::max(best_ring_[size], ring_[set]);
    best_bisection[size] = std::max(best_bisection[size], bisection_[set]);
    best_aggregate[size] = std::max(best_aggregate[size], aggregate_[set]);
  }
  rank_.assign(sets_, 0);
  for (Set set = 1; set < sets_; ++set) {
    const std::size_t size = Index(std::popcount(set));
    const auto part = [](int own, int best) { return best > 0 ? double(own) / best : 1.0; };
    const double quality = kRingWeight * part(ring_[set], best_ring_[size]) +
                           kBisectionWeight * part(bisection_[set], best_bisection[size]) +
                           kAggregateWeight * part(aggregate_[set], best_aggregate[size]);
    const int rounded = static_cast<int>(std::lround(quality * kPerfect));
    rank_[set] = static_cast<std::uint16_t>((rounded + 1) * kRanksPerQuality - wiring_.Span(set));
  }
}

// Both parts of value(F) look at every set that holds the lowest GPU of F: a partition puts that
// GPU into one of them (or leaves it out, where F does not divide), and all other sets of F are
// sets of F without it.
void SetTable::BuildValues(const SizeMix& mix) {
  double all = 0;
  for (int size = 1; size <= wiring_.gpus; ++size) all += mix.share[Index(size)];
  std::vector<double> values(sets_, 0.0);
  std::vector<int> partition(sets_), sum(sets_);
  for (int size = 2; size <= wiring_.gpus && all > 0; ++size) {
    const double share = mix.share[Index(size)] / all;
    if (share <= 0) continue;
    std::ranges::fill(partition, 0);
    std::ranges::fill(sum, 0);
    for (Set free = 1; free < sets_; ++free) {
      const int members = std::popcount(free);
      if (members < size) continue;
      const Set lowest = Lowest(free);
      const Set rest = free ^ lowest;
      int best = members % size != 0 ? partition[rest] : 0;
      int total = sum[rest];
      ForEachSubset(rest, size - 1, [&](Set others) {
        const Set set = others | lowest;
        const int own = quality(set);
        best = std::max(best, own + partition[free ^ set]);
        total += own;
      });
      partition[free] = best;
      sum[free] = total;
      values[free] +=
          share * (best / double(members / size) + kMeanWeight * total / Choices(members, size));
    }
  }
  value_.assign(sets_, 0);
  for (Set free = 1; free < sets_; ++free) {
    value_[free] = static_cast<int>(std::lround(values[free] / kPerfect * kMillion));
    value_[free] += Compactness(free);
  }
}

// Sum of the squares of how many GPUs of a set each NUMA group has.
int SetTable::Compactness(GpuMask set) const {
  std::array<int, kMaxTableGpus> members{};
  int squares = 0;
  for (; set != 0; set &= set - 1) {
    squares += 2 * members[Index(wiring_.numa[Index(std::countr_zero(set))])]++ + 1;
  }
  return squares;
}

void SetTable::BuildChoices() {
  choice_.assign(sets_ * Index(wiring_.gpus + 1), 0);
  for (int size = 1; size <= wiring_.gpus; ++size) {
    for (Set free = 1; free < sets_; ++free) {
      if (std::popcount(free) < size) continue;
      choice_[sets_ * Index(size) + free] = static_cast<std::uint8_t>(Search(free, size, 0));
    }
  }
}

GpuMask SetTable::Choose(GpuMask free, int size, GpuMask required) const {
  const int members = std::popcount(required);
  if (size < 1 || size > std::popcount(free) || members > size || (required & ~free) != 0) return 0;
  if (required == 0 && !choice_.empty()) return choice_[sets_ * Index(size) + free];
  return Search(free, size, required);
}

GpuMask SetTable::Search(GpuMask free, int size, GpuMask required) const {
  if (size == 1) return required != 0 ? required : WorstConnected(free);
  Set best = 0;
  int best_rank = -1, best_value = 0;
  const Set fixed = static_cast<Set>(required);
  ForEachSubset(static_cast<Set>(free) ^ fixed, size - std::popcount(required), [&](Set others) {
    const Set set = others | fixed;
    const int rank = rank_[set];
    if (rank < best_rank) return;
    const int value = value_[static_cast<Set>(free) ^ set];
    if (rank == best_rank && value <= best_value) return;
    best = set;
    best_rank = rank;
    best_value = value;
  });
  return best;
}

GpuMask SetTable::WorstConnected(GpuMask free) const {
  GpuMask best = 0;
  std::pair<int, int> best_key;
  for (GpuMask rest = free; rest != 0; rest &= rest - 1) {
    const GpuMask gpu = rest & (~rest + 1);
    const GpuMask others = free ^ gpu;
    const std::pair<int, int> key(value_[others], aggregate_[others] - aggregate_[free]);
    if (best != 0 && key <= best_key) continue;
    best = gpu;
    best_key = key;
  }
  return best;
}

// The tenants of a machine, leaving until `size` GPUs are free.
class SetOutlook::Departures {
 public:
  Departures(const SetOutlook& outlook, std::span<const GpuMask> tenants, int size)
      : outlook_(outlook), tenants_(tenants), size_(size) {
    std::fill_n(mean_.begin(), std::size_t{1} << tenants.size(), kUnknown);
  }

  // The mean of best(F', size), where bit i of `gone` stands for tenants[i], which has left.
  double MeanBest(GpuMask free, unsigned gone) {
    if (std::popcount(free) >= size_) return outlook_.best(size_, free);
    double& mean = mean_[gone];
    if (mean != kUnknown) return mean;
    double sum = 0;
    int stay = 0;
    for (unsigned i = 0; i < tenants_.size(); ++i) {
      if ((gone >> i & 1U) != 0) continue;
      sum += MeanBest(free | tenants_[i], gone | 1U << i);
      ++stay;
    }
    return mean = stay == 0 ? 0 : sum / stay;
  }

 private:
  static constexpr double kUnknown = -1'000'000;

  const SetOutlook& outlook_;
  const std::span<const GpuMask> tenants_;
  const int size_;
  std::array<double, std::size_t{1} << kMaxOutlookGpus> mean_;  // [gone], what was reached
};

SetOutlook::SetOutlook(const SetTable& table, const SizeMix& mix) : table_(table) {
  const int gpus = table.wiring().gpus;
  BERTH_CHECK(gpus <= kMaxOutlookGpus);
  const GpuMask sets = GpuMask{1} << gpus;
  std::array<int, kMaxOutlookGpus + 1> least_span{};
  for (int size = 1; size <= gpus; ++size) {
    least_span[static_cast<std::size_t>(size)] = table.wiring().LeastSpan(size);
  }
  utility_.assign(sets, 0);
  for (GpuMask set = 1; set < sets; ++set) {
    const double least = least_span[static_cast<std::size_t>(std::popcount(set))];
    const double utility =
        double(table.quality(set)) / kPerfect - kSpanWeight * (1 - least / table.span(set));
    utility_[set] = static_cast<int>(std::lround(utility * kUnit));
  }
  double all = 0;
  for (const double share : mix.share) all += share;
  // All sets of one GPU are alike, and so is the set of all.
  for (int size = 2; size < gpus; ++size) {
    if (mix.share[static_cast<std::size_t>(size)] <= 0) continue;
    shares_.emplace_back(size, mix.share[static_cast<std::size_t>(size)] / all);
    std::vector<int>& best = best_[static_cast<std::size_t>(size)];
    best.assign(sets, 0);
    for (GpuMask free = 1; free < sets; ++free) {
      if (std::popcount(free) < size) continue;
      int most = std::popcount(free) == size ? utility_[free] : -kUnit;
      for (GpuMask rest = free; std::popcount(free) > size && rest != 0; rest &= rest - 1) {
        most = std::max(most, best[free ^ LowestBit(rest)]);
      }
      best[free] = most;
    }
  }
}

double SetOutlook::Next(GpuMask free, std::span<const GpuMask> tenants) const {
  double next = 0;
  for (const auto& [size, share] : shares_) {
    next +=
        share * (std::popcount(free) >= size ? best(size, free)
                                             : Departures(*this, tenants, size).MeanBest(free, 0));
  }
  return next;
}

GpuMask SetOutlook::Choose(GpuMask free, int size, GpuMask required,
                           std::span<const GpuMask> tenants) const {
  std::array<GpuMask, kMaxOutlookGpus + 1> held{};
  BERTH_CHECK(tenants.size() < held.size());
  std::ranges::copy(tenants, held.begin());
  const std::span<const GpuMask> after(held.data(), tenants.size() + 1);
  using Key = std::tuple<std::int64_t, int, int>;
  GpuMask best = 0;
  Key best_key;
  for (GpuMask set = free; set != 0; set = (set - 1) & free) {  // descending
    if (std::popcount(set) != size || (required & ~set) != 0) continue;
    held[tenants.size()] = set;
    const GpuMask rest = free ^ set;
    const double worth = utility_[set] + kNextWeight * Next(rest, after);
    const Key key(std::lround(worth), -table_.span(set), table_.value(rest));
    if (best != 0 && key < best_key) continue;
    best = set;
    best_key = key;
  }
  return best;
}

}  // namespace berth
