// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/fragmentation_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace berth {
namespace {

constexpr std::size_t kMemoSlots = 1 << 16;

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

FragmentationGradient::FragmentationGradient(const RequestMix& mix, const CardWorth& worth)
    : groups_(mix), worth_(worth), memo_(std::make_unique<StateMemo>(kMemoSlots)) {
  for (const RequestClass& entry : mix) {
    classes_.push_back({entry.shape.cpu_milli, entry.shape.gpu_count(), entry.shape.milli_per_gpu(),
                        ShareMemoryMib(entry.shape), entry.weight});
  }
}

double FragmentationGradient::FragmentMilli(const GpuState& state, std::size_t group) const {
  const std::uint64_t key = state.Hash(group);
  if (const auto known = memo_->Find(key)) return *known;
  const double fragment =
      worth_.counts_memory ? ComputeWithMemory(state, group) : Compute(state, group);
  memo_->Store(key, fragment);
  return fragment;
}

double FragmentationGradient::Compute(const GpuState& state, std::size_t group) const {
  const std::vector<std::uint8_t>& admits = groups_.Admits(group);
  // One sum per cause, added up in this order at the end: with another order the last bits differ,
  // and with them now and then the truncated score.
  enum Cause { kLackBoth, kLackGpu, kLackCpu, kCpuOnlyFits, kCpuOnlyShort, kNoAccess, kCauses };
  std::array<double, kCauses> by_cause{};
  const double total = state.total;
  for (std::size_t m = 0; m < classes_.size(); ++m) {
    const Class& wanted = classes_[m];
    const bool cpu_fits = state.cpu_milli >= wanted.cpu_milli;
    if (wanted.milli == 0) {
      by_cause[cpu_fits ? kCpuOnlyFits : kCpuOnlyShort] += wanted.weight * total;
    } else if (admits[m] == 0) {
      by_cause[kNoAccess] += wanted.weight * total;
    } else {
      const bool gpu_fits =
          state.count >= wanted.gpus &&
          state.free[static_cast<std::size_t>(state.count - wanted.gpus)] >= wanted.milli;
      if (gpu_fits && cpu_fits) {
        int fragment = 0;
        for (std::size_t g = 0; state.free[g] < wanted.milli; ++g) fragment += state.free[g];
        by_cause[kLackGpu] += wanted.weight * fragment;
      } else {
        by_cause[gpu_fits ? kLackCpu : cpu_fits ? kLackGpu : kLackBoth] += wanted.weight * total;
      }
    }
  }
  double sum = 0;
  for (const double amount : by_cause) sum += amount;
  return sum;
}

double FragmentationGradient::ComputeWithMemory(const GpuState& state, std::size_t group) const {
  const std::vector<std::uint8_t>& admits = groups_.Admits(group);
  const auto cards = static_cast<std::size_t>(state.count);
  const bool known = state.card_mib > 0;
  std::array<double, kMaxGpusPerNode> worth{};
  double total = 0, sum = 0;
  for (std::size_t g = 0; g < cards; ++g) {
    worth[g] = worth_.MilliOf(state.free[g], known ? state.memory_mib[g] : 0,
                              std::max<std::int64_t>(state.card_mib, 1));
    total += worth[g];
  }
  for (std::size_t m = 0; m < classes_.size(); ++m) {
    const Class& wanted = classes_[m];
    double fragment = 0;
    int fitting = 0;
    for (std::size_t g = 0; g < cards; ++g) {
      const bool fits =
          state.free[g] >= wanted.milli &&
          (wanted.memory_mib == 0 || (known && state.memory_mib[g] >= wanted.memory_mib));
      fitting += fits ? 1 : 0;
      fragment += fits ? 0 : worth[g];
    }
    const bool fits = wanted.milli > 0 && admits[m] != 0 && fitting >= wanted.gpus &&
                      state.cpu_milli >= wanted.cpu_milli;
    sum += wanted.weight * (fits ? fragment : total);
  }
  return sum;
}

double FragmentationGradient::FragmentMilli(const Node& node) const {
  return FragmentMilli(worth_.StateOf(node), groups_.GroupOf(node.spec().gpu_model));
}

void FragmentationGradient::Score(const Node& node, const RequestShape& shape,
                                  std::span<const DeviceChoice> choices,
                                  std::span<int> scores) const {
  const GpuState before = worth_.StateOf(node);
  const std::size_t group = groups_.GroupOf(node.spec().gpu_model);
  const double fragment_before = FragmentMilli(before, group);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double grown =
        fragment_before - FragmentMilli(before.After(node, shape, choices[i]), group);
    scores[i] = static_cast<int>(Sigmoid(grown / kMilliPerGpu) * kMaxScore);
  }
}

}  // namespace berth
