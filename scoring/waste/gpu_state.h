// SPDX-License-Identifier: Apache-2.0
//
// GpuState: the part of a node that metrics depend on - free CPU and the free compute of its GPUs,
// sorted and without indices, so that equally full nodes are equal. A value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/random.h"
#include "cluster/node.h"
#include "scoring/scorer.h"

namespace berth {

// Free compute of a GPU as the metrics see it, in thousandths: nothing on one that is closed.
inline int UsableMilli(const Node& node, std::size_t gpu) {
  return node.IsOpen(static_cast<int>(gpu)) ? std::max(node.gpus()[gpu].milli, 0) : 0;
}

struct GpuState {
  explicit GpuState(const Node& node)
      : cpu_milli(node.free_cpu_milli()), count(static_cast<int>(node.gpus().size())) {
    for (std::size_t g = 0; g < node.gpus().size(); ++g) {
      free[g] = UsableMilli(node, g);
      total += free[g];
    }
    std::sort(free.begin(), free.begin() + count);
  }

  // `kind` stands for what else the metric distinguishes nodes by.
  [[nodiscard]] std::uint64_t Hash(std::size_t kind) const {
    constexpr int kBits = 10, kPerWord = 6;
    static_assert(kMilliPerGpu < 1 << kBits);
    std::uint64_t hash = Mix64(Mix64(static_cast<std::uint64_t>(cpu_milli)) + kind);
    std::uint64_t word = static_cast<std::uint64_t>(count);
    for (int g = 0; g < count; ++g) {
      if (g % kPerWord == 0) hash = Mix64(hash ^ std::exchange(word, 0));
      word = word << kBits | static_cast<std::uint64_t>(free[static_cast<std::size_t>(g)]);
    }
    return Mix64(hash ^ word);
  }

  // Replaces one free amount by another one and keeps the order.
  void Change(int from, int to) {
    int* const first = free.data();
    int* const at = std::lower_bound(first, first + count, from);
    int* const target = std::lower_bound(first, at, to);
    std::copy_backward(target, at, at + 1);
    *target = to;
    total += to - from;
  }

  // This state once the node has given the choice to a pod of that shape.
  [[nodiscard]] GpuState After(const Node& node, const RequestShape& shape,
                               const DeviceChoice& choice) const {
    GpuState after = *this;
    after.cpu_milli -= shape.cpu_milli;
    for (std::uint64_t rest = choice.gpus; rest != 0; rest &= rest - 1) {
      const int before = UsableMilli(node, static_cast<std::size_t>(__builtin_ctzll(rest)));
      after.Change(before, before - choice.milli);
    }
    return after;
  }

  // How many GPUs are wholly free.
  [[nodiscard]] int idle() const {
    const auto end = free.begin() + count;
    return static_cast<int>(end - std::lower_bound(free.begin(), end, kMilliPerGpu));
  }

  std::int64_t cpu_milli;
  int count;                              // GPUs
  int total = 0;                          // sum of free
  std::array<int, kMaxGpusPerNode> free;  // the first `count`, ascending
};

}  // namespace berth
