// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/fragmentation_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace berth {

namespace {

constexpr std::size_t kMemoSlots = 1 << 16;

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Free compute of a GPU as the metric sees it: nothing on one that is out of order.
int UsableMilli(const Node& node, std::size_t gpu) {
  return node.spec().gpus[gpu].healthy ? std::max(node.gpus()[gpu].milli, 0) : 0;
}

}  // namespace

struct FragmentationGradient::State {
  explicit State(const Node& node)
      : cpu_milli(node.free_cpu_milli()), count(static_cast<int>(node.gpus().size())) {
    for (std::size_t g = 0; g < node.gpus().size(); ++g) {
      free[g] = UsableMilli(node, g);
      total += free[g];
    }
    std::sort(free.begin(), free.begin() + count);
  }

  [[nodiscard]] std::uint64_t Hash(std::size_t admission) const {
    constexpr int kBits = 10, kPerWord = 6;
    static_assert(kMilliPerGpu < 1 << kBits);
    std::uint64_t hash = Mix64(Mix64(static_cast<std::uint64_t>(cpu_milli)) + admission);
    std::uint64_t word = static_cast<std::uint64_t>(count);
    for (int g = 0; g < count; ++g) {
      if (g % kPerWord == 0) hash = Mix64(hash ^ std::exchange(word, 0));
      word = word << kBits | static_cast<std::uint64_t>(free[static_cast<std::size_t>(g)]);
    }
    return Mix64(hash ^ word);
  }

  std::int64_t cpu_milli;
  int count;                              // GPUs
  int total = 0;                          // sum of free
  std::array<int, kMaxGpusPerNode> free;  // the first `count`, ascending

  // Replaces one free amount by another one and keeps the order.
  void Change(int from, int to) {
    int* const first = free.data();
    int* const at = std::lower_bound(first, first + count, from);
    int* const target = std::lower_bound(first, at, to);
    std::copy_backward(target, at, at + 1);
    *target = to;
    total += to - from;
  }
};

FragmentationGradient::FragmentationGradient(const RequestMix& mix)
    : memo_(std::make_unique<StateMemo>(kMemoSlots)) {
  std::vector<std::string> models;
  for (const RequestClass& entry : mix) {
    classes_.push_back({entry.shape.cpu_milli, entry.shape.gpu_count(), entry.shape.milli_per_gpu(),
                        entry.weight});
    for (const std::string& model : entry.shape.models) models.push_back(model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  models.emplace_back();  // any other model
  for (std::string& model : models) {
    Admission admission{std::move(model), {}};
    for (const RequestClass& entry : mix) {
      const bool named = !admission.model.empty();
      admission.admits.push_back(named ? entry.shape.Admits(admission.model)
                                       : entry.shape.models.empty());
    }
    admissions_.push_back(std::move(admission));
  }
}

std::size_t FragmentationGradient::AdmissionOf(std::string_view model) const {
  std::size_t index = 0;
  while (index + 1 < admissions_.size() && admissions_[index].model != model) ++index;
  return index;
}

double FragmentationGradient::Fragment(const State& state, std::size_t admission) const {
  const std::uint64_t key = state.Hash(admission);
  if (const auto known = memo_->Find(key)) return *known;
  const double fragment = ComputeFragment(state, admission);
  memo_->Store(key, fragment);
  return fragment;
}

double FragmentationGradient::ComputeFragment(const State& state, std::size_t admission) const {
  const std::vector<std::uint8_t>& admits = admissions_[admission].admits;
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

double FragmentationGradient::FragmentMilli(const Node& node) const {
  return Fragment(State(node), AdmissionOf(node.spec().gpu_model));
}

void FragmentationGradient::Score(const Node& node, const RequestShape& shape,
                                  std::span<const DeviceChoice> choices,
                                  std::span<int> scores) const {
  const State before(node);
  const std::size_t admission = AdmissionOf(node.spec().gpu_model);
  const double fragment_before = Fragment(before, admission);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    State after = before;
    after.cpu_milli -= shape.cpu_milli;
    for (std::uint64_t rest = choices[i].gpus; rest != 0; rest &= rest - 1) {
      const int free = UsableMilli(node, static_cast<std::size_t>(__builtin_ctzll(rest)));
      after.Change(free, free - choices[i].milli);
    }
    const double grown = fragment_before - Fragment(after, admission);
    scores[i] = static_cast<int>(Sigmoid(grown / kMilliPerGpu) * kMaxScore);
  }
}

}  // namespace berth
