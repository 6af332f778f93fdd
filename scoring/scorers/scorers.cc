// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/scorers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "scoring/mig/mig_tables.h"
#include "topology/gpu_mask.h"
#include "topology/gpu_vendor.h"
#include "topology/links/set_table.h"

namespace berth {
namespace {

bool AllAlike(const Node& node, const RequestShape& shape) {
  return shape.gpu_count() < 2 || !node.spec().links.known();
}

// In GPUs.
constexpr double kEmptyStatic = 0.5;
constexpr double kCutting = 1;
constexpr double kEmptyDynamic = 0.001;

// The part of the node's partitioned GPUs that is free once the slots are taken.
double FreePart(const MigSpec& spec, const MigUse& use, std::span<const MigSlot> slots) {
  MigUse after = use;
  for (const MigSlot& slot : slots) after.Take(slot);
  const int units = spec.product->memory_units();
  int taken = 0;
  for (const MigSet set : after.taken()) taken += std::popcount(spec.product->UnitsOf(set));
  return 1 - taken / static_cast<double>(units * std::ssize(spec.gpus));
}

double CostOf(const Node& node, const MigSlices& ask) {
  const MigSpec& spec = *node.spec().mig;
  if (spec.gpus.empty()) return 0;  // devices with several users, or each device a GPU
  const auto plan = PlanMig(spec, node.mig(), ask);
  if (!plan || plan->slots.empty()) return 0;
  const double free = FreePart(spec, node.mig(), plan->slots);
  return spec.dynamic ? kCutting + plan->loss_gpus + kEmptyDynamic * free : kEmptyStatic * free;
}

constexpr std::size_t kMemoSlots = 1 << 16;

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

constexpr double kSlicesPerGpu = 7;
constexpr double kMostPoints = 1e6;

double MigGpus(const MigSlices& ask) {
  double slices = 0;
  for (const MigWant& want : ask.wants) {
    const int each = want.profile ? want.profile->compute_slices : want.min_slices;
    slices += want.count * std::max(each, 1);
  }
  return slices / kSlicesPerGpu;
}

double GpusTaken(const RequestShape& shape, const DeviceChoice& choice) {
  if (choice.gpus != 0) return std::popcount(choice.gpus) * choice.milli / double{kMilliPerGpu};
  if (const MigSlices* const mig = shape.mig()) return MigGpus(*mig);
  return shape.gpu_count();
}

}  // namespace

void LinkQuality::Score(const Node& node, const RequestShape& shape,
                        std::span<const DeviceChoice> choices, std::span<int> scores) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = AllAlike(node, shape)
                    ? kMaxScore
                    : node.spec().links.quality(choices[i].gpus) * kMaxScore / kPerfect;
  }
}

void NumaLocality::Score(const Node& node, const RequestShape& shape,
                         std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const bool alike = AllAlike(node, shape);
  const int least = alike ? 1 : node.spec().links.LeastSpan(shape.gpu_count());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int used = alike ? 1 : node.spec().links.span(choices[i].gpus);
    scores[i] = kMaxScore * least / used;
  }
}

void MigPacking::Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice>,
                       std::span<int> scores) const {
  const double cost = shape.mig() == nullptr ? 0 : CostOf(node, *shape.mig());
  std::ranges::fill(scores, -static_cast<int>(std::lround(cost * kPointsPerGpu)));
}

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

double WorthPerGpu(const NodeSpec& spec, std::span<const TraitWish> wishes) {
  double percent = 0;
  for (const TraitWish& wish : wishes) {
    if (wish.trait == kPriceWish) {
      percent -= wish.weight * spec.gpu_price;
    } else if (HasTrait(spec.traits, wish.trait)) {
      percent += wish.weight;
    }
  }
  return percent / 100;
}

double GpusTakenAnywhere(const RequestShape& shape) {
  return shape.gpu_count() * shape.milli_per_gpu() / double{kMilliPerGpu};
}

int PointsOf(double worth_per_gpu, double gpus) {
  const double points = worth_per_gpu * gpus * ExpectedWaste::kPointsPerGpu;
  return static_cast<int>(std::lround(std::clamp(points, -kMostPoints, kMostPoints)));
}

void WorkloadFit::Score(const Node& node, const RequestShape& shape,
                        std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const double worth = WorthPerGpu(node.spec(), shape.nodes.wishes);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = PointsOf(worth, GpusTaken(shape, choices[i]));
  }
}

ExpectedWaste::ExpectedWaste(const RequestMix& mix, const Fleet& fleet,
                             const WasteParameters& parameters)
    : potential_(mix, fleet, parameters),
      market_(mix, potential_.groups(), fleet, parameters, kPointsPerGpu, potential_.worth()),
      fragmentation_weight_(parameters.fragmentation),
      best_fit_(parameters.best_fit),
      cpu_price_(CpuPriceOf(mix, fleet)) {
  if (fragmentation_weight_ > 0) fragmentation_.emplace(mix, potential_.worth());
}

double ExpectedWaste::CostMilli(const GpuState& state, std::size_t group) const {
  const double waste = potential_.WasteMilli(state, group);
  if (!fragmentation_) return waste;
  return waste + fragmentation_weight_ * fragmentation_->FragmentMilli(state, group);
}

void ExpectedWaste::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const GpuState before = potential_.worth().StateOf(node);
  const std::size_t group = potential_.groups().GroupOf(node.spec().gpu_model);
  const double cost_before = CostMilli(before, group);
  const double cpu_price = shape.wants_gpu() || before.count == 0 ? 0 : cpu_price_;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const GpuState after = before.After(node, shape, choices[i]);
    const double grown = (CostMilli(after, group) - cost_before) / kMilliPerGpu;
    const double cpu_left = static_cast<double>(after.cpu_milli) / kLargestNodeCpuMilli;
    const double left = cpu_left + static_cast<double>(after.total) / kLargestNodeGpuMilli;
    const double cost = grown + best_fit_ * left / 2 + cpu_price * cpu_left;
    scores[i] = -static_cast<int>(std::lround(cost * kPointsPerGpu));
  }
}

}  // namespace berth
