// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/request_mix.h"

#include <cmath>
#include <utility>

namespace berth {
namespace {

constexpr double kLargestUnit = 1e12;
constexpr double kForgotten = 1e-9;  // pods

// The key of a class. Links, disk, needs and wishes do not say how many GPUs will be asked for.
RequestShape KeyOf(RequestShape shape) {
  shape.memory_bytes = 0;
  shape.ephemeral_bytes = 0;
  shape.links = {};
  shape.isolation = Isolation::kUnsaid;
  shape.min_capability = 0;
  shape.min_gpu_memory_mib = 0;
  shape.model_rules.clear();
  shape.gpu_rules.clear();
  shape.spread = Spread::kNone;
  shape.workload.clear();
  shape.nodes = {};
  shape.neighbours = {};
  shape.beside_nic = false;
  shape.gpu_steps.clear();
  return shape;
}

constexpr double kSettled = 0.25;  // the turnover from which on a cluster counts as in balance
constexpr double kRoomForAll = 0.5, kNoRoom = 0.8;  // used
constexpr double kMostSlotPrice = 0.01;

}  // namespace

ModelGroups::ModelGroups(const RequestMix& mix) {
  std::vector<std::string> models;
  for (const RequestClass& entry : mix) {
    for (const std::string& model : entry.shape.models) models.push_back(model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  models.emplace_back();
  for (std::string& model : models) {
    Group group{std::move(model), {}};
    for (const RequestClass& entry : mix) {
      const bool named = !group.model.empty();
      group.admits.push_back(named ? entry.shape.Admits(group.model) : entry.shape.models.empty());
    }
    groups_.push_back(std::move(group));
  }
}

WasteParameters AtTurnover(WasteParameters parameters, double turnover, double used) {
  const double moving = std::min(turnover / kSettled, 1.0);
  const double full = std::clamp((used - kRoomForAll) / (kNoRoom - kRoomForAll), 0.0, 1.0);
  const double settled = moving * full;
  const double ratio = double(parameters.settled_patience) / parameters.patience;
  parameters.patience =
      static_cast<int>(std::lround(parameters.patience * std::pow(ratio, settled)));
  parameters.fragmentation +=
      (parameters.settled_fragmentation - parameters.fragmentation) * settled;
  parameters.best_fit += (parameters.settled_best_fit - parameters.best_fit) * settled;
  parameters.optimism *= 1 - settled;
  parameters.slot_price += (kMostSlotPrice - parameters.slot_price) * moving;
  return parameters;
}

LearnedMix::LearnedMix(const LearningParameters& parameters)
    : parameters_(parameters), growth_(std::exp2(1.0 / parameters.half_life_pods)) {
  const MutexLock lock(mutex_);
  BeginEpoch();
}

LearnedMix::LearnedMix(const LearnedMix& other)
    : parameters_(other.parameters_), growth_(other.growth_) {
  const MutexLock theirs(other.mutex_);
  const MutexLock lock(mutex_);
  counts_ = other.counts_;
  unit_ = other.unit_;
  pods_ = other.pods_;
  gpu_pods_ = other.gpu_pods_;
  epoch_ends_ = other.epoch_ends_;
  epoch_ = other.epoch_;
}

void LearnedMix::Add(const RequestShape& shape, double pods) {
  if (shape.gpu_count() > kMaxGpusPerNode) return;  // replicas: no set of GPUs
  const RequestShape key = KeyOf(shape);
  Count& count = counts_[key];  // a copy of it, without the memory that its lists had
  count.pods += pods;
  count.memory_bytes += pods * static_cast<double>(shape.memory_bytes);
}

void LearnedMix::Observe(const RequestShape& shape) {
  if (shape.mig() != nullptr) return;
  const MutexLock lock(mutex_);
  unit_ *= growth_;
  gpu_pods_ += shape.wants_gpu() ? 1 : 0;
  Add(shape, unit_);
  // Twice as many may come together before the rarest are sought.
  if (counts_.size() > 2 * kMaxClasses) DropRare();
  if (unit_ > kLargestUnit) {
    for (auto& [key, count] : counts_) {
      count.pods /= unit_;
      count.memory_bytes /= unit_;
    }
    // A class forgotten so far would end as 0 of 0.
    std::erase_if(counts_, [](const auto& entry) { return entry.second.pods < kForgotten; });
    unit_ = 1;
  }
  if (++pods_ >= epoch_ends_) BeginEpoch();
}

void LearnedMix::DropRare() {
  if (counts_.size() <= kMaxClasses) return;
  std::vector<double> weights;
  for (const auto& [key, count] : counts_) weights.push_back(count.pods);
  const auto last = weights.begin() + (kMaxClasses - 1);
  std::ranges::nth_element(weights, last, std::greater<>());
  const double least = *last;
  std::erase_if(counts_, [&](const auto& entry) { return entry.second.pods < least; });
  // Among equals those that come last go.
  for (auto it = counts_.end(); counts_.size() > kMaxClasses && it != counts_.begin();) {
    --it;
    if (it->second.pods == least) it = counts_.erase(it);
  }
}

std::vector<RequestClass> LearnedMix::Classes(double unit) const {
  std::vector<RequestClass> classes;
  for (const auto& [key, count] : counts_) {
    RequestShape shape = key;
    shape.memory_bytes = std::llround(count.memory_bytes / count.pods);
    classes.push_back({std::move(shape), count.pods / unit});
  }
  // The map's order decides among equals.
  std::ranges::stable_sort(classes, std::greater<>(), &RequestClass::weight);
  return classes;
}

void LearnedMix::BeginEpoch() {
  DropRare();
  double sum = 0;
  for (const auto& [key, count] : counts_) sum += count.pods;
  epoch_ = {epoch_.number + 1, std::make_shared<const RequestMix>(Classes(sum)), pods_, gpu_pods_};
  const std::int64_t grown = std::max<std::int64_t>(pods_ * 2 / 5, 1);
  epoch_ends_ = pods_ + std::min<std::int64_t>(grown, parameters_.longest_epoch_pods);
}

LearnedMix::Epoch LearnedMix::Current() const {
  const MutexLock lock(mutex_);
  return epoch_;
}

LearnedMix::Memory LearnedMix::Remember() const {
  const MutexLock lock(mutex_);
  return {pods_, Classes(unit_)};
}

void LearnedMix::Restore(const Memory& memory) {
  const MutexLock lock(mutex_);
  counts_.clear();
  unit_ = 1;
  pods_ = memory.pods;
  for (const RequestClass& entry : memory.classes) Add(entry.shape, entry.weight);
  BeginEpoch();
}

LearnedMix::Memory BoundPods(const Snapshot& snapshot, double most) {
  LearnedMix::Memory memory;
  std::map<RequestShape, double> pods;
  snapshot.ForEachPod([&](const auto& record, NodeIndex) {
    const RequestShape& shape = record->pod.shape;
    const bool has_mig = shape.mig() != nullptr || !record->placement.mig.empty();
    if (!record->pod.refusal.empty() || has_mig) return;
    pods[WithCompute(shape, snapshot)] += 1;
    ++memory.pods;
  });
  const double weight = std::min(1.0, most / std::max<double>(double(memory.pods), 1));
  for (const auto& [shape, count] : pods) memory.classes.push_back({shape, count * weight});
  return memory;
}

RequestShape WithCompute(RequestShape shape, const Snapshot& snapshot) {
  auto* const share = std::get_if<GpuShare>(&shape.gpus);
  if (share == nullptr || (share->milli > 0 && share->memory_milli == 0)) return shape;
  const GpuShare asked = *share;
  share->milli = shape.milli_per_gpu() > 0 ? shape.milli_per_gpu() : kMilliPerGpu;
  share->memory_milli = 0;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (spec.gpus.empty() || !shape.Admits(spec.gpu_model)) continue;
    if (const auto grant = GrantOfShare(spec.gpus.front(), 0, asked)) {
      share->milli = grant->milli;
      share->memory_mib = grant->memory_mib;
      break;
    }
  }
  return shape;
}

}  // namespace berth
