// SPDX-License-Identifier: Apache-2.0
#include "bench/baselines/baselines.h"

#include <algorithm>
#include <array>
#include <limits>

#include "bench/power/power.h"
#include "scoring/registry.h"
#include "scoring/scorers/scorers.h"

namespace berth {
namespace {

constexpr int kTier = kMaxScore / 4;

int ClusteringTier(const Node& node, const RequestShape& shape) {
  const int kind = shape.is_share() ? 0 : shape.gpu_count();
  if (node.tenants().empty()) return 1;
  if (std::ranges::find(node.tenants(), kind, &Tenants::gpus) == node.tenants().end()) return 0;
  return node.tenants().size() == 1 ? 3 : 2;
}

int PackingScore(const Node& node, const DeviceChoice& choice) {
  const auto idle = static_cast<int>(std::ranges::count_if(node.gpus(), &GpuFree::idle));
  const auto gpus = static_cast<int>(node.gpus().size());
  if (idle == gpus) return std::clamp(kMaxScore / 3 - idle, std::min(idle, kMaxScore), kMaxScore);
  int idle_taken = 0, free_percent = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    if ((choice.gpus >> gpu & 1) == 0) continue;
    const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
    idle_taken += free.idle() ? 1 : 0;
    free_percent += free.milli * 100 / kMilliPerGpu;
  }
  if (idle_taken > 0) return std::max(kMaxScore / 2 - idle_taken, kMaxScore / 3);
  return std::max(kMaxScore - free_percent / 10, kMaxScore / 2);
}

class MeanLeft {
 public:
  void Add(std::int64_t left, std::int64_t capacity) {
    if (capacity <= 0) return;
    sum_ += std::clamp(static_cast<double>(left) / static_cast<double>(capacity), 0.0, 1.0);
    ++count_;
  }
  [[nodiscard]] int Score() const {
    return count_ == 0 ? 0 : static_cast<int>(sum_ * kMaxScore / count_);
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

void BestFit::Score(const Node& node, const RequestShape& shape,
                    std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const auto free_gpu = static_cast<double>(node.free_gpu_milli());
  const auto cpu_left = static_cast<double>(node.free_cpu_milli() - shape.cpu_milli);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double gpu_left = free_gpu - choices[i].milli * shape.gpu_count();
    const double left =
        cpu_left / kLargestNodeCpuMilli * 0.5 + gpu_left / kLargestNodeGpuMilli * 0.5;
    scores[i] = static_cast<int>((1.0 - left) * kMaxScore);
  }
}

void DotProduct::Score(const Node& node, const RequestShape& shape,
                       std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const double free_cpu = static_cast<double>(node.free_cpu_milli()) / kLargestNodeCpuMilli;
  const double free_gpu = static_cast<double>(node.free_gpu_milli()) / kLargestNodeGpuMilli;
  const double cpu = static_cast<double>(shape.cpu_milli) / kLargestNodeCpuMilli;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double gpu =
        static_cast<double>(choices[i].milli * shape.gpu_count()) / kLargestNodeGpuMilli;
    const double product = free_cpu * cpu + free_gpu * gpu;
    // Nodes beyond 128 cores or 8 GPUs can leave 0..1.
    scores[i] = std::clamp(static_cast<int>(kMaxScore * (1 - product / 2)), 0, kMaxScore);
  }
}

void GpuClustering::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice>, std::span<int> scores) const {
  int score = 0;
  if (shape.wants_gpu() && shape.mig() == nullptr) {
    // A node with more than 8 GPUs has at least this much free: 0 of its tier.
    const std::int64_t used =
        std::max<std::int64_t>(kLargestNodeGpuMilli - node.free_gpu_milli(), 0);
    score = static_cast<int>(std::min<std::int64_t>(kTier * used / kLargestNodeGpuMilli, kTier)) +
            kTier * ClusteringTier(node, shape);
  }
  std::ranges::fill(scores, score);
}

void GpuPacking::Score(const Node& node, const RequestShape& shape,
                       std::span<const DeviceChoice> choices, std::span<int> scores) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = shape.wants_gpu() ? PackingScore(node, choices[i]) : 0;
  }
}

void Spreading::Score(const Node& node, const RequestShape& shape,
                      std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const NodeSpec& spec = node.spec();
  const auto gpu_capacity = static_cast<std::int64_t>(spec.gpus.size()) * kMilliPerGpu;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    MeanLeft mean;
    mean.Add(node.free_cpu_milli() - shape.cpu_milli, spec.cpu_milli);
    mean.Add(node.free_memory_bytes() - shape.memory_bytes, spec.memory_bytes);
    if (shape.wants_gpu()) {
      const std::int64_t taken = std::int64_t{choices[i].milli} * shape.gpu_count();
      mean.Add(node.free_gpu_milli() - taken, gpu_capacity);
    }
    scores[i] = mean.Score();
  }
}

void Pwr::Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
                std::span<int> scores) const {
  const int unknown = UnknownWatts(shape);
  int least = std::numeric_limits<int>::max();
  for (const DeviceChoice& choice : choices) {
    least = std::min(least, AddedWatts(node, shape, choice).value_or(unknown));
  }
  std::ranges::fill(scores, -least);
}

namespace {

constexpr auto kBaselines = std::to_array<ScorerEntry>({
    {"best-fit", MixUse::kNone, Make<BestFit>},
    {"dot-product", MixUse::kNone, Make<DotProduct>},
    {"gpu-clustering", MixUse::kNone, Make<GpuClustering>},
    {"gpu-packing", MixUse::kNone, Make<GpuPacking>},
    {"power", MixUse::kNone, Make<Power>},
    {"pwr", MixUse::kNone, Make<Pwr>},
    {"spreading", MixUse::kNone, Make<Spreading>},
});

std::vector<ProfileSpec> Profiles() {
  std::vector<ProfileSpec> profiles = {
      {"first-fit", {}, DeviceRule::kFirst, TieRule::kFirst},
      {"power", {{"power", 1}}, DeviceRule::kBestScore, TieRule::kEqual},
      {"power-saving",
       {{"expected-waste", 4},
        {"power", 1},
        {"mig-packing", 4},
        {std::string(kWorkloadClassScorer), 4},
        {std::string(kDomainLocality), 4}},
       DeviceRule::kBestScore,
       TieRule::kFullest},
      {"pwr-fgd",
       {{"pwr", 100}, {"fragmentation-gradient", 900}},
       DeviceRule::kBestScore,
       TieRule::kEqual},
      {"random", {}, DeviceRule::kRandom, TieRule::kEqual},
  };
  for (const char* scorer :
       {"best-fit", "dot-product", "gpu-clustering", "gpu-packing", "link-quality", "mig-packing",
        "numa-locality", "pwr", "spreading", "workload-class"}) {
    profiles.push_back({scorer, {{scorer, 1}}, DeviceRule::kTightest, TieRule::kEqual});
  }
  return profiles;
}

const bool kRegistered = (AddToRegistry(kBaselines, Profiles()), true);

}  // namespace

}  // namespace berth
