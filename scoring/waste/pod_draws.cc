// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/pod_draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "base/random.h"
#include "topology/gpu_mask.h"

namespace berth {
namespace {

constexpr std::uint64_t kFillSeed = 7000;  // of the first fill
constexpr std::size_t kMostFills = 256;
constexpr double kCalibrationStep = 0.5;  // exponent of the correction of one round
constexpr double kMostPerRound = 2, kMostInAll = 10;
constexpr std::int64_t kMib = std::int64_t{1} << 20;

// The indices of the shortest list of classes, most frequent first, that has that share of the
// weight; never none.
std::vector<std::uint16_t> MostFrequent(const RequestMix& mix, double coverage) {
  std::vector<std::uint16_t> order(mix.size());
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::uint16_t i) { return mix[i].weight; });
  double all = 0, covered = 0;
  for (const RequestClass& entry : mix) all += entry.weight;
  std::size_t count = 0;
  while (count < order.size() && covered < coverage * all) covered += mix[order[count++]].weight;
  order.resize(count);
  return order;
}

// [class] GPUs of the fleet over GPUs of the models that the class takes.
std::vector<double> RarityOf(const RequestMix& mix, const Fleet& fleet) {
  std::map<std::string_view, double> gpus;
  double all = 0;
  for (const NodeKind& kind : fleet) {
    const double count = static_cast<double>(kind.nodes) * kind.state.total / kMilliPerGpu;
    gpus[kind.gpu_model] += count;
    all += count;
  }
  std::vector<double> rarity(mix.size(), 1);
  for (std::size_t m = 0; m < mix.size(); ++m) {
    double admitted = 0;
    for (const std::string& model : mix[m].shape.models) {
      if (const auto found = gpus.find(model); found != gpus.end()) admitted += found->second;
    }
    if (admitted > 0) rarity[m] = all / admitted;
  }
  return rarity;
}

std::int64_t MainMibPerGpu(const RequestMix& mix) {
  double mib = 0, gpus = 0;
  for (const auto& [shape, weight, draw] : mix) {
    if (!shape.wants_gpu()) continue;
    mib += weight * static_cast<double>(shape.memory_bytes / kMib);
    gpus += weight * shape.gpu_count() * shape.milli_per_gpu() / kMilliPerGpu;
  }
  constexpr double kMost = 1 << 30;  // a PiB
  return gpus > 0 ? static_cast<std::int64_t>(std::min(mib / gpus, kMost)) : 0;
}

double OptimisticMean(std::span<const double> values, double optimism) {
  const auto count = static_cast<double>(values.size());
  if (optimism <= 0) return std::accumulate(values.begin(), values.end(), 0.0) / count;
  const double least = *std::ranges::min_element(values);  // so that no term vanishes
  double sum = 0;
  for (const double value : values) sum += std::exp((least - value) / optimism);
  return least - optimism * std::log(sum / count);
}

// Draws indices by weight, by the inverse of the distribution: small changes change few draws.
class Wheel {
 public:
  explicit Wheel(std::span<const double> weights) {
    for (const double weight : weights) up_to_.push_back(sum_ += weight);
    std::size_t index = 0;
    for (std::size_t part = 0; part < starts_.size(); ++part) {
      const double from = sum_ * static_cast<double>(part) / static_cast<double>(starts_.size());
      while (index + 1 < up_to_.size() && up_to_[index] <= from) ++index;
      starts_[part] = static_cast<std::uint16_t>(index);
    }
  }
  [[nodiscard]] double sum() const { return sum_; }
  // unit: in [0, 1). Requires: sum() > 0.
  [[nodiscard]] std::size_t At(double unit) const {
    std::size_t index =
        starts_[static_cast<std::size_t>(unit * static_cast<double>(starts_.size()))];
    while (index + 1 < up_to_.size() && up_to_[index] <= unit * sum_) ++index;
    return index;
  }

 private:
  std::vector<double> up_to_;
  std::array<std::uint16_t, 256> starts_{};
  double sum_ = 0;
};

}  // namespace

// What a node has beside its GPUs while it is being filled.
struct PodDraws::Rest {
  std::int64_t cpu_milli;
  std::int64_t main_mib;

  [[nodiscard]] bool Has(const Class& pod) const {
    return pod.cpu_milli <= cpu_milli && pod.main_mib <= main_mib;
  }
  void Take(const Class& pod) {
    cpu_milli -= pod.cpu_milli;
    main_mib -= pod.main_mib;
  }
};

// A node while it is being filled.
struct PodDraws::Filling : Rest {
  int count;
  int total;
  std::array<std::int16_t, kMaxGpusPerNode> free;  // the first `count`, ascending

  Filling(const GpuState& state, const PodDraws& of)
      : Rest{state.cpu_milli, of.MainMib(state)}, count(state.count), total(state.total) {
    for (int g = 0; g < count; ++g)
      free[Index(g)] = static_cast<std::int16_t>(state.free[Index(g)]);
  }

  static std::size_t Index(int gpu) { return static_cast<std::size_t>(gpu); }
  [[nodiscard]] int Free(int gpu) const { return free[Index(gpu)]; }
  [[nodiscard]] int MostMilli() const { return count > 0 ? Free(count - 1) : 0; }  // of one GPU

  [[nodiscard]] double Left() const { return total; }  // in thousandths of a GPU
  // Requires: it asks for GPUs.
  [[nodiscard]] bool Fits(const Class& pod) const {
    return Has(pod) && pod.gpus <= count && Free(count - pod.gpus) >= pod.milli;
  }
  [[nodiscard]] bool FitsAny(const std::vector<Class>& pods) const {
    return std::ranges::any_of(pods, [this](const Class& pod) { return Fits(pod); });
  }

  // Requires: it fits.
  void Place(const Class& pod) {
    Take(pod);
    total -= pod.gpus * pod.milli;
    if (pod.milli == kMilliPerGpu) {
      std::copy_backward(free.begin(), free.begin() + (count - pod.gpus), free.begin() + count);
      std::fill_n(free.begin(), pod.gpus, std::int16_t{0});
      return;
    }
    int gpu = count - pod.gpus;
    while (gpu > 0 && Free(gpu - 1) >= pod.milli) --gpu;
    if (pod.gpus > 1) {
      for (int g = gpu; g < gpu + pod.gpus; ++g) {
        free[Index(g)] = static_cast<std::int16_t>(Free(g) - pod.milli);
      }
      std::sort(free.begin(), free.begin() + gpu + pod.gpus);
      return;
    }
    const int left = Free(gpu) - pod.milli;
    for (; gpu > 0 && Free(gpu - 1) > left; --gpu) free[Index(gpu)] = free[Index(gpu - 1)];
    free[Index(gpu)] = static_cast<std::int16_t>(left);
  }
};

// The same where memory is counted: GPUs with what is free of both, in no order.
struct PodDraws::CardFilling : Rest {
  int count;
  std::int64_t card_mib;
  const CardWorth* worth;
  std::array<std::int32_t, kMaxGpusPerNode> milli{};  // the first `count`
  std::array<std::int32_t, kMaxGpusPerNode> memory_mib{};
  std::int32_t most_milli = 0, most_mib = 0;  // of one GPU: most pods that do not fit fail here

  CardFilling(const GpuState& state, const PodDraws& of)
      : Rest{state.cpu_milli, of.MainMib(state)},
        count(state.count),
        card_mib(state.card_mib),
        worth(&of.worth_) {
    const auto cards_end = static_cast<std::ptrdiff_t>(count);
    std::copy(state.free.begin(), state.free.begin() + cards_end, milli.begin());
    if (card_mib > 0) {
      std::copy(state.memory_mib.begin(), state.memory_mib.begin() + cards_end, memory_mib.begin());
    }
    FindMost();
  }

  void FindMost() {
    most_milli = count > 0 ? *std::max_element(milli.begin(), milli.begin() + count) : 0;
    most_mib = count > 0 ? *std::max_element(memory_mib.begin(), memory_mib.begin() + count) : 0;
  }

  [[nodiscard]] int MostMilli() const { return most_milli; }
  [[nodiscard]] std::size_t cards() const { return static_cast<std::size_t>(count); }
  [[nodiscard]] static bool IsWhole(const Class& pod) {
    return pod.milli == kMilliPerGpu && pod.memory_mib == 0;
  }
  [[nodiscard]] std::int64_t MemoryOf(const Class& share) const {
    return share.memory_mib > 0 ? share.memory_mib : card_mib * share.milli / kMilliPerGpu;
  }
  [[nodiscard]] bool Takes(std::size_t g, const Class& share, std::int64_t memory) const {
    return milli[g] >= share.milli && memory_mib[g] >= memory;
  }

  [[nodiscard]] bool Fits(const Class& pod) const {
    if (!Has(pod) || pod.milli > most_milli) return false;
    if (IsWhole(pod)) {
      return std::count(milli.begin(), milli.begin() + count, kMilliPerGpu) >= pod.gpus;
    }
    const std::int64_t memory = MemoryOf(pod);
    if (memory > most_mib) return false;
    int takers = 0;
    for (std::size_t g = 0; g < cards(); ++g) {
      if (Takes(g, pod, memory) && ++takers >= pod.gpus) return true;
    }
    return false;
  }
  [[nodiscard]] bool FitsAny(const std::vector<Class>& pods) const {
    return std::ranges::any_of(pods, [this](const Class& pod) { return Fits(pod); });
  }

  void Place(const Class& pod) {
    Take(pod);
    if (IsWhole(pod)) {
      int left = pod.gpus;
      for (std::size_t g = 0; g < cards() && left > 0; ++g) {
        if (milli[g] != kMilliPerGpu) continue;
        milli[g] = memory_mib[g] = 0;
        --left;
      }
      return FindMost();
    }
    const std::int64_t memory = MemoryOf(pod);
    for (GpuMask taken = 0; std::popcount(taken) < pod.gpus;) {
      const std::size_t best = TightestBut(taken, pod, memory);
      milli[best] -= pod.milli;
      memory_mib[best] -= static_cast<std::int32_t>(memory);
      taken |= GpuBit(static_cast<int>(best));
    }
    FindMost();
  }

  // Requires: one fits that is not taken.
  [[nodiscard]] std::size_t TightestBut(GpuMask taken, const Class& pod,
                                        std::int64_t memory) const {
    std::size_t best = cards();
    double least = 0;
    for (std::size_t g = 0; g < cards(); ++g) {
      if ((taken >> g & 1) != 0 || !Takes(g, pod, memory)) continue;
      const double left = Left(g);
      if (best != cards() && left >= least) continue;
      best = g;
      least = left;
    }
    return best;
  }

  // In thousandths of a GPU.
  [[nodiscard]] double Left(std::size_t g) const {
    return worth->MilliOf(milli[g], memory_mib[g], std::max<std::int64_t>(card_mib, 1));
  }
  [[nodiscard]] double Left() const {
    double sum = 0;
    for (std::size_t g = 0; g < cards(); ++g) sum += Left(g);
    return sum;
  }
};

PodDraws::PodDraws(const RequestMix& mix, const Fleet& fleet, const WasteParameters& parameters)
    : fills_(parameters.fills),
      patience_(parameters.patience),
      optimism_milli_(parameters.optimism * kMilliPerGpu),
      groups_(mix),
      worth_(WorthOf(mix, fleet)),
      main_mib_per_gpu_(MainMibPerGpu(mix)),
      drawn_(MostFrequent(mix, parameters.coverage)) {
  for (const RequestClass& entry : mix) {
    classes_.push_back({entry.shape.cpu_milli, entry.shape.gpu_count(), entry.shape.milli_per_gpu(),
                        worth_.counts_memory ? ShareMemoryMib(entry.shape) : 0,
                        entry.shape.memory_bytes / kMib});
  }
  const std::vector<double> rarity = RarityOf(mix, fleet);
  for (std::size_t g = 0; g < groups_.size(); ++g) by_group_.push_back(MakeGroup(mix, g, rarity));
}

void PodDraws::KeepLeast(const Class& asked, std::vector<Class>& least) {
  const auto no_less = [](const Class& a, const Class& b) {
    return a.cpu_milli >= b.cpu_milli && a.gpus >= b.gpus && a.milli >= b.milli &&
           a.memory_mib >= b.memory_mib && a.main_mib >= b.main_mib;
  };
  if (std::ranges::any_of(least, [&](const Class& other) { return no_less(asked, other); })) return;
  std::erase_if(least, [&](const Class& other) { return no_less(other, asked); });
  least.push_back(asked);
}

PodDraws::Group PodDraws::MakeGroup(const RequestMix& mix, std::size_t group,
                                    std::span<const double> rarity) const {
  Group made;
  std::vector<double> weights;
  for (const std::uint16_t m : drawn_) {
    const bool wants_gpu = mix[m].shape.wants_gpu();
    const bool admitted = !wants_gpu || groups_.Admits(group)[m] != 0;
    weights.push_back(admitted ? mix[m].weight * mix[m].draw * (wants_gpu ? rarity[m] : 1) : 0);
    if (admitted && wants_gpu) KeepLeast(classes_[m], made.least);
  }
  const Wheel wheel(weights);
  if (made.least.empty()) return made;
  made.draws.reserve(static_cast<std::size_t>(fills_) * kDraws);
  for (int fill = 0; fill < fills_; ++fill) {
    Random random(kFillSeed + static_cast<std::uint64_t>(fill));
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      made.draws.push_back(drawn_[wheel.At(random.Unit())]);
    }
  }
  AddSteps(made);
  return made;
}

void PodDraws::AddSteps(Group& made) const {
  made.steps.resize(made.draws.size());
  for (std::size_t first = 0; first < made.draws.size(); first += kDraws) {
    const std::span<const std::uint16_t> draws(made.draws.data() + first, kDraws);
    const std::span<Step> steps(made.steps.data() + first, kDraws);
    std::array<std::uint16_t, kDraws> lesser;  // those to come, each asks for less than the next
    std::size_t known = 0;
    auto next_cpu = static_cast<std::uint16_t>(kDraws), with_gpus = std::uint16_t{0};
    for (std::size_t i = kDraws; i-- > 0;) {
      const Class& pod = classes_[draws[i]];
      const auto asks_no_less = [&](std::size_t j) {
        return classes_[draws[j]].milli >= pod.milli;
      };
      steps[i].next_cpu = next_cpu;
      if (pod.gpus == 0) {
        next_cpu = static_cast<std::uint16_t>(i);
        continue;
      }
      while (known > 0 && asks_no_less(lesser[known - 1])) --known;
      steps[i].lesser = known > 0 ? lesser[known - 1] : static_cast<std::uint16_t>(kDraws);
      lesser[known++] = static_cast<std::uint16_t>(i);
    }
    for (std::size_t i = 0; i < kDraws; ++i) {
      steps[i].gpu_pods = with_gpus;
      if (classes_[draws[i]].gpus > 0) ++with_gpus;
    }
  }
}

template <class Filled, class Accept>
void PodDraws::Fill(const Group& group, std::size_t fill, Filled& filling, Accept accept) const {
  const std::uint16_t* const draws = group.draws.data() + fill * kDraws;
  const Step* const steps = group.steps.data() + fill * kDraws;
  const auto takes_cpu = [&](std::size_t i) {  // whether the filling ends
    const Class& pod = classes_[draws[i]];
    if (!filling.Has(pod)) return false;
    filling.Take(pod);
    return accept(filling, draws[i]);
  };
  int refused = 0;
  for (std::size_t i = 0; i < kDraws;) {
    const Class& pod = classes_[draws[i]];
    if (pod.gpus == 0) {
      if (takes_cpu(i++)) return;
      continue;
    }
    if (filling.Fits(pod)) {
      refused = 0;
      filling.Place(pod);
      if (accept(filling, draws[i++])) return;
      continue;
    }
    // Until a pod asks for less of a GPU than this one, only those without GPU change anything.
    const std::size_t next = pod.milli > filling.MostMilli() ? steps[i].lesser : i + 1;
    const auto refused_until = [&](std::size_t j) {
      return refused + steps[j].gpu_pods - steps[i].gpu_pods;
    };
    for (std::size_t j = steps[i].next_cpu; j < next; j = steps[j].next_cpu) {
      if (refused_until(j) > patience_ || takes_cpu(j)) return;
    }
    if (next >= kDraws || refused_until(next) > patience_) return;
    refused = refused_until(next);
    i = next;
  }
}

template <class Filled>
double PodDraws::LeftAfterFills(const Filled& start, const Group& group) const {
  if (!start.FitsAny(group.least)) return start.Left();
  std::array<double, kMostFills> left{};
  for (int fill = 0; fill < fills_; ++fill) {
    Filled filling = start;
    // Pods without GPU change nothing any more where no other one fits.
    Fill(group, static_cast<std::size_t>(fill), filling,
         [&](const Filled& now, std::uint16_t) { return !now.FitsAny(group.least); });
    left[static_cast<std::size_t>(fill)] = filling.Left();
  }
  return OptimisticMean({left.data(), static_cast<std::size_t>(fills_)}, optimism_milli_);
}

double PodDraws::LeftMilli(const GpuState& state, std::size_t group) const {
  const Group& pods = by_group_[group];
  return worth_.counts_memory ? LeftAfterFills(CardFilling(state, *this), pods)
                              : LeftAfterFills(Filling(state, *this), pods);
}

std::int64_t PodDraws::MainMib(const GpuState& state) const {
  const std::int64_t free = std::max<std::int64_t>(state.main_bytes / kMib, 0);
  if (2 * free >= 5 * main_mib_per_gpu_ * state.total / kMilliPerGpu) return kPlentyMib;
  const std::int64_t step = std::max<std::int64_t>(main_mib_per_gpu_ / 10, 1);
  return (free + step / 2) / step * step;
}

void PodDraws::CountAccepted(const GpuState& state, std::size_t group, double times,
                             std::span<double> accepted) const {
  const Group& pods = by_group_[group];
  if (pods.draws.empty()) return;
  const std::int64_t least_cpu = std::ranges::min(pods.least, {}, &Class::cpu_milli).cpu_milli;
  const int least_milli = std::ranges::min(pods.least, {}, &Class::milli).milli;
  for (int fill = 0; fill < fills_; ++fill) {
    const auto number = static_cast<std::size_t>(fill);
    if (worth_.counts_memory) {
      CardFilling filling(state, *this);
      Fill(pods, number, filling, [&](const CardFilling& now, std::uint16_t m) {
        accepted[m] += times;
        return classes_[m].gpus > 0 && !now.FitsAny(pods.least);
      });
      continue;
    }
    Filling filling(state, *this);
    Fill(pods, number, filling, [&](const Filling& now, std::uint16_t m) {
      accepted[m] += times;
      return classes_[m].gpus > 0 &&
             (now.cpu_milli < least_cpu || now.Free(now.count - 1) < least_milli);
    });
  }
}

void Calibrate(RequestMix& mix, const Fleet& fleet, const Fleet& now,
               const WasteParameters& parameters) {
  const PodDraws draws(mix, fleet, parameters);
  std::vector<double> accepted(mix.size(), 0);  // shares
  for (const Fleet* nodes : {&fleet, &now}) {
    std::vector<double> counts(mix.size(), 0);
    for (const NodeKind& kind : *nodes) {
      draws.CountAccepted(kind.state, draws.groups().GroupOf(kind.gpu_model), kind.nodes, counts);
    }
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (std::size_t m = 0; m < counts.size() && all > 0; ++m) accepted[m] += counts[m] / all;
  }
  const double all_accepted = std::accumulate(accepted.begin(), accepted.end(), 0.0);
  if (all_accepted <= 0) return;
  double all_wanted = 0;
  for (const std::uint16_t m : draws.drawn()) all_wanted += mix[m].weight;
  for (const std::uint16_t m : draws.drawn()) {
    const double wanted = mix[m].weight / all_wanted;
    const double got = std::max(accepted[m] / all_accepted, 1e-9);
    const double step = std::pow(wanted / got, kCalibrationStep);
    mix[m].draw = std::clamp(mix[m].draw * std::clamp(step, 1 / kMostPerRound, kMostPerRound),
                             1 / kMostInAll, kMostInAll);
  }
}

void InheritDraws(const RequestMix& before, RequestMix& mix) {
  std::map<RequestShape, double> known;
  const auto key = [](RequestShape shape) {
    shape.memory_bytes = 0;
    return shape;
  };
  for (const RequestClass& entry : before) known.emplace(key(entry.shape), entry.draw);
  for (RequestClass& entry : mix) {
    if (const auto found = known.find(key(entry.shape)); found != known.end()) {
      entry.draw = found->second;
    }
  }
}

double WastePotential::WasteMilli(const GpuState& state, std::size_t group) const {
  if (state.total == 0 && !worth().counts_memory) return 0;
  const auto main_mib = static_cast<std::uint64_t>(draws_.MainMib(state));
  const std::uint64_t key = Mix64(state.Hash(group) ^ main_mib);
  if (const auto known = memo_->Find(key)) return *known;
  computed_.fetch_add(1, std::memory_order_relaxed);
  const double waste = draws_.LeftMilli(state, group);
  memo_->Store(key, waste);
  return waste;
}

}  // namespace berth
