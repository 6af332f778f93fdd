// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/classes/class_workload.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "bench/replay/text.h"
#include "cluster/values/node_constraints.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kBytesOfGib = std::int64_t{1} << 30;
constexpr int kCoresOfGpu = 32;
constexpr std::int64_t kCardMib = 81'920;
constexpr double kMsOfHour = 3'600'000;

struct Family {
  int nodes, gpus;
  double gpu_price;
  std::vector<std::string_view> traits;  // of all its nodes, beside the name of the family
  bool half_have_nvme;
};

const std::array<Family, kFamilies>& Families() {
  static const std::array<Family, kFamilies> families = {{
      {16, 8, 4.0, {kTraitRdma, kTraitNvlink, kTraitNvswitch, kTraitNvme}, false},
      {24, 4, 3.0, {}, true},
      {16, 4, 1.0, {kTraitSpot}, true},
  }};
  return families;
}

// What pods of a class ask for and how long they run. Sizes in thousandths of a GPU.
struct Work {
  std::vector<int> milli;
  int fewest = 1, most = 1;  // replicas
  double mean_hours = 1;
  // A reclaim takes what was done since the last multiple of it; empty: all that was done.
  std::optional<Millis> checkpoint;

  [[nodiscard]] double MeanGpus() const {
    const double sum = std::accumulate(milli.begin(), milli.end(), 0.0);
    return sum / static_cast<double>(milli.size()) / kMilliPerGpu * (fewest + most) / 2;
  }
};

const PerWorkClass<Work>& Works() {
  static const PerWorkClass<Work> works = {{
      {{4000, 8000}, 1, 1, 8, std::chrono::hours(1)},
      {{250, 500, 1000, 1000}, 2, 6, 24, Millis(1)},
      {{1000, 1000, 2000}, 1, 1, 0.5, std::nullopt},
  }};
  return works;
}

NodeSpec NodeOf(std::size_t family, int number) {
  const Family& of = Families()[family];
  NodeSpec node;
  node.cpu_milli = std::int64_t{1000} * kCoresOfGpu * of.gpus;
  node.memory_bytes = 4 * kBytesOfGib * kCoresOfGpu * of.gpus;
  node.gpu_model = "gpu";
  node.gpus.assign(static_cast<std::size_t>(of.gpus), GpuSpec{"", kCardMib, true});
  node.gpu_price = of.gpu_price;
  node.traits.assign(of.traits.begin(), of.traits.end());
  node.traits.emplace_back(kFamilyTraits[family]);
  if (of.half_have_nvme && number % 2 == 0) node.traits.emplace_back(kTraitNvme);
  std::ranges::sort(node.traits);
  return node;
}

// In a drawn order, so that the first of equal nodes is of no family in particular.
void AddNodes(ClassWorkload& workload, Random& random) {
  std::vector<std::pair<std::size_t, int>> order;  // family, number in it
  for (std::size_t f = 0; f < kFamilies; ++f) {
    for (int i = 0; i < Families()[f].nodes; ++i) order.emplace_back(f, i);
  }
  random.Shuffle(order);
  for (const auto& [family, number] : order) {
    NodeSpec node = NodeOf(family, number);
    node.name = "node-" + Padded(workload.nodes.size(), order.size());
    workload.nodes.push_back(std::move(node));
    workload.families.push_back(family);
  }
}

double AboveNought(Random& random) { return 1.0 - random.Unit(); }  // its logarithm is finite

// The pods of one class.
class ClassStream {
 public:
  ClassStream(ClassWorkload& workload, std::size_t work, double running_gpus, std::uint64_t seed)
      : workload_(workload),
        number_(work),
        work_(Works()[work]),
        running_gpus_(running_gpus),
        per_ms_(running_gpus / work_.MeanGpus() / (work_.mean_hours * kMsOfHour)),
        random_(seed),
        law_(Lifetimes::kLogNormal, Millis(std::llround(work_.mean_hours * kMsOfHour))) {}

  [[nodiscard]] double ExpectedPods() const {
    const double together = (work_.fewest + work_.most) / 2.0;
    const double ms = work_.mean_hours * kMsOfHour + double(workload_.horizon.count());
    return per_ms_ * ms * together;
  }

  void AddPrimed() {
    for (double gpus = 0; gpus < running_gpus_;) {
      gpus += AddJob(Millis(0), law_.DrawResidual(random_));
    }
  }
  void AddArrivals() {
    if (per_ms_ <= 0) return;
    PoissonTimes times(per_ms_, workload_.horizon);
    while (const auto at = times.Next(random_)) AddJob(*at, law_.Draw(random_));
  }

 private:
  // Returns the GPUs that it asks for.
  double AddJob(Millis at, Millis runs) {
    const int milli = work_.milli[random_.Below(work_.milli.size())];
    const auto spread = static_cast<std::uint64_t>(work_.most - work_.fewest + 1);
    const int replicas = work_.fewest + static_cast<int>(random_.Below(spread));
    const std::size_t kind = KindOf(milli);
    for (int i = 0; i < replicas; ++i) workload_.pods.push_back({number_, kind, at, runs});
    return double(replicas) * milli / kMilliPerGpu;
  }

  std::size_t KindOf(int milli) {
    RequestShape shape;
    const int gpus = milli / kMilliPerGpu;
    const int cores = std::max(1, 4 * gpus);
    shape.cpu_milli = 1000 * cores;
    shape.memory_bytes = 2 * kBytesOfGib * cores;
    if (gpus == 0) {
      shape.gpus = GpuShare{milli, 0};
    } else {
      shape.gpus = WholeGpus{gpus};
    }
    const auto found = std::ranges::find(workload_.kinds, shape);
    if (found == workload_.kinds.end()) {
      workload_.kinds.push_back(std::move(shape));
      return workload_.kinds.size() - 1;
    }
    return static_cast<std::size_t>(found - workload_.kinds.begin());
  }

  ClassWorkload& workload_;
  const std::size_t number_;
  const Work& work_;
  const double running_gpus_, per_ms_;  // in the mean; jobs
  Random random_;
  const LifetimeLaw law_;
};

void AddReclaims(ClassWorkload& workload, double per_day, Random& random) {
  if (per_day <= 0) return;
  const double mean_ms = 24 * kMsOfHour / per_day;
  for (std::size_t n = 0; n < workload.nodes.size(); ++n) {
    if (workload.families[n] != kSpotFamily) continue;
    for (double at = 0;;) {
      at += -std::log(AboveNought(random)) * mean_ms;
      if (at >= static_cast<double>(workload.horizon.count())) break;
      workload.reclaims.push_back({n, Millis(std::llround(at))});
    }
  }
  std::ranges::stable_sort(workload.reclaims, {}, &Reclaim::at);
}

}  // namespace

Result<ClassWorkload> DrawClassWorkload(const ClassOptions& options) {
  const double parts = std::accumulate(options.parts.begin(), options.parts.end(), 0.0);
  if (parts <= 0) return Invalid("parts: want one above 0, got none");
  ClassWorkload workload;
  workload.horizon = Millis(std::llround(options.hours * kMsOfHour));
  Random random(options.seed);
  AddNodes(workload, random);
  double gpus = 0;
  for (const NodeSpec& node : workload.nodes) gpus += static_cast<double>(node.gpus.size());
  std::vector<ClassStream> streams;
  double pods = 0;
  for (std::size_t c = 0; c < kWorkClasses; ++c) {
    streams.emplace_back(workload, c, options.load * gpus * options.parts[c] / parts,
                         random.Next());
    pods += streams.back().ExpectedPods();
  }
  if (pods > kMostArrivals) {
    return Invalid("load, hours: want at most " +
                   std::to_string(static_cast<std::int64_t>(kMostArrivals)) + " pods");
  }
  AddReclaims(workload, options.reclaims_per_day, random);
  for (ClassStream& stream : streams) stream.AddPrimed();
  workload.primed = workload.pods.size();
  // Those that were running came in no order of classes.
  random.Shuffle(workload.pods);
  for (ClassStream& stream : streams) stream.AddArrivals();
  std::ranges::stable_sort(workload.pods, {}, &ClassPod::at);
  return workload;
}

Millis KeptAfter(std::size_t work, Millis ran) {
  const std::optional<Millis> checkpoint = Works()[work].checkpoint;
  return checkpoint ? ran - ran % *checkpoint : Millis(0);
}

double GpusTaken(const RequestShape& shape) {
  return double(shape.gpu_count()) * shape.milli_per_gpu() / kMilliPerGpu;
}

}  // namespace berth::replay
