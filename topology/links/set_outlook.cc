// SPDX-License-Identifier: Apache-2.0
#include "topology/links/set_outlook.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace berth {
namespace {

constexpr int kUnit = 10'000;  // utility 1
constexpr double kNextWeight = 0.7, kSpanWeight = 0.03;

}  // namespace

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
