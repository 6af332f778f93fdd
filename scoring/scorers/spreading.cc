// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/spreading.h"

#include <algorithm>

namespace berth {
namespace {

class Mean {
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

void Spreading::Score(const Node& node, const RequestShape& shape,
                      std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const NodeSpec& spec = node.spec();
  const auto gpu_capacity = static_cast<std::int64_t>(spec.gpus.size()) * kMilliPerGpu;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    Mean mean;
    mean.Add(node.free_cpu_milli() - shape.cpu_milli, spec.cpu_milli);
    mean.Add(node.free_memory_bytes() - shape.memory_bytes, spec.memory_bytes);
    if (shape.wants_gpu()) {
      const std::int64_t taken = std::int64_t{choices[i].milli} * shape.gpu_count();
      mean.Add(node.free_gpu_milli() - taken, gpu_capacity);
    }
    scores[i] = mean.Score();
  }
}

}  // namespace berth
