// SPDX-License-Identifier: Apache-2.0
//
// GpuState: the part of a node that metrics depend on - free CPU, free main memory and the free
// compute of its GPUs, sorted and without indices, so that equally full nodes are equal. With the
// memory of the GPUs, where it is counted (gpu_state.h): then those with equal compute are sorted
// by it. A value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

// Free compute of a GPU as the metrics see it, in thousandths: nothing on one that is closed.
inline int UsableMilli(const Node& node, std::size_t gpu) {
  return node.IsOpen(static_cast<int>(gpu)) ? std::max(node.gpus()[gpu].milli, 0) : 0;
}

inline std::int32_t UsableMib(const Node& node, std::size_t gpu) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (!node.IsOpen(static_cast<int>(gpu))) return 0;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(node.gpus()[gpu].memory_mib, 0, kMost));
}

struct GpuState {
  explicit GpuState(const Node& node)
      : cpu_milli(node.free_cpu_milli()),
        main_bytes(node.free_memory_bytes()),
        count(static_cast<int>(node.gpus().size())) {
    for (std::size_t g = 0; g < node.gpus().size(); ++g) {
      free[g] = UsableMilli(node, g);
      total += free[g];
    }
    std::sort(free.begin(), free.begin() + count);
  }

  static GpuState WithMemory(const Node& node) {
    GpuState state(node);
    for (const GpuSpec& gpu : node.spec().gpus) {
      state.card_mib = std::max(state.card_mib, gpu.memory_mib);
    }
    if (state.card_mib == 0) return state;
    std::array<Card, kMaxGpusPerNode> cards;
    for (std::size_t g = 0; g < node.gpus().size(); ++g) {
      cards[g] = {UsableMilli(node, g), UsableMib(node, g)};
    }
    std::sort(cards.begin(), cards.begin() + state.count);
    for (std::size_t g = 0; g < node.gpus().size(); ++g) {
      std::tie(state.free[g], state.memory_mib[g]) = cards[g];
    }
    return state;
  }

  // `kind` stands for what else the metric distinguishes nodes by. Without the main memory, which
  // most metrics ignore.
  [[nodiscard]] std::uint64_t Hash(std::size_t kind) const {
    constexpr int kBits = 10, kPerWord = 6;
    static_assert(kMilliPerGpu < 1 << kBits);
    std::uint64_t hash = Mix64(Mix64(static_cast<std::uint64_t>(cpu_milli)) + kind);
    std::uint64_t word = static_cast<std::uint64_t>(count);
    for (int g = 0; g < count; ++g) {
      if (g % kPerWord == 0) hash = Mix64(hash ^ std::exchange(word, 0));
      word = word << kBits | static_cast<std::uint64_t>(free[static_cast<std::size_t>(g)]);
    }
    if (card_mib == 0) return Mix64(hash ^ word);
    for (int g = 0; g < count; ++g) {
      hash = Mix64(hash ^ static_cast<std::uint64_t>(memory_mib[static_cast<std::size_t>(g)]));
    }
    return Mix64(hash ^ word ^ static_cast<std::uint64_t>(card_mib));
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

  // The same where memory is counted.
  void Change(std::pair<int, std::int32_t> from, std::pair<int, std::int32_t> to) {
    std::size_t g = 0;
    while (CardAt(g) != from) ++g;
    const auto put = [this](std::size_t at, const Card& card) {
      std::tie(free[at], memory_mib[at]) = card;
    };
    for (; g > 0 && to < CardAt(g - 1); --g) put(g, CardAt(g - 1));
    put(g, to);
    total += to.first - from.first;
  }

  // This state once the node has given the choice to a pod of that shape.
  [[nodiscard]] GpuState After(const Node& node, const RequestShape& shape,
                               const DeviceChoice& choice) const {
    GpuState after = *this;
    after.cpu_milli -= shape.cpu_milli;
    after.main_bytes -= shape.memory_bytes;
    for (std::uint64_t rest = choice.gpus; rest != 0; rest &= rest - 1) {
      const auto gpu = static_cast<std::size_t>(__builtin_ctzll(rest));
      const int before = UsableMilli(node, gpu), left = std::max(before - choice.milli, 0);
      if (card_mib == 0) {
        after.Change(before, left);
        continue;
      }
      const std::int32_t memory = UsableMib(node, gpu);
      const auto taken = static_cast<std::int32_t>(
          shape.is_share() ? std::min<std::int64_t>(choice.memory_mib, memory) : memory);
      after.Change(Card(before, memory), Card(left, memory - taken));
    }
    return after;
  }

  // How many GPUs are wholly free.
  [[nodiscard]] int idle() const {
    const auto end = free.begin() + count;
    return static_cast<int>(end - std::lower_bound(free.begin(), end, kMilliPerGpu));
  }

  std::int64_t cpu_milli;
  std::int64_t main_bytes;                // main memory
  int count;                              // GPUs
  int total = 0;                          // sum of free
  std::int64_t card_mib = 0;              // memory of the largest GPU; 0: memory is not counted
  std::array<int, kMaxGpusPerNode> free;  // the first `count`, ascending
  std::array<std::int32_t, kMaxGpusPerNode> memory_mib;  // of the same GPUs; where it is counted

 private:
  using Card = std::pair<int, std::int32_t>;  // free compute and memory
  [[nodiscard]] Card CardAt(std::size_t g) const { return {free[g], memory_mib[g]}; }
};

// CardWorth: what free compute and free memory of GPUs are worth, one against the other.
//
// A share takes compute and memory of one GPU, and what is left of the one is no use without the
// other. Where no pod of the mix says how much memory its share needs, memory follows compute, and
// compute alone is counted. Else free GPU is
//
//   compute * free compute + memory * free memory, each as a part of a GPU
//   compute : memory = asked compute ^ 4 : asked memory ^ 4, and their sum is 1
//   asked: by a pod of the mix in the mean, as parts of a GPU of the fleet
//
// so a wholly free GPU is one GPU. What more is asked of fills up first, and nearly all that counts
// is what is left of that: in a cluster that could be packed without remainders the shadow prices
// would be 1 and 0. The exponent says how soon that is taken for certain.

// A value. WorthOf (fleet.h) makes it of a mix.
struct CardWorth {
  double compute = 1, memory = 0;
  bool counts_memory = false;
  double mean_card_mib = 0;  // of the fleet; > 0 where memory is counted

  // In thousandths of a GPU. Requires: card_mib > 0.
  [[nodiscard]] double MilliOf(int milli, std::int64_t memory_mib, std::int64_t card_mib) const {
    const double part = static_cast<double>(memory_mib) / static_cast<double>(card_mib);
    return compute * milli + memory * kMilliPerGpu * part;
  }
  // All that is free on a node. Requires: a state of StateOf.
  [[nodiscard]] double MilliOf(const GpuState& state) const {
    if (!counts_memory) return state.total;
    double sum = 0;
    for (std::size_t g = 0; g < static_cast<std::size_t>(state.count); ++g) {
      sum += state.card_mib == 0 ? compute * state.free[g]
                                 : MilliOf(state.free[g], state.memory_mib[g], state.card_mib);
    }
    return sum;
  }
  // What is counted of the node.
  [[nodiscard]] GpuState StateOf(const Node& node) const {
    return counts_memory ? GpuState::WithMemory(node) : GpuState(node);
  }

  // What a pod asks for, in GPUs; 0 for one that asks for none.
  [[nodiscard]] double GpusOf(const RequestShape& shape) const {
    const auto* const share = std::get_if<GpuShare>(&shape.gpus);
    if (!counts_memory || share == nullptr || share->memory_mib == 0) {
      return static_cast<double>(shape.gpu_count() * shape.milli_per_gpu()) / kMilliPerGpu;
    }
    return share->count * (compute * share->milli / kMilliPerGpu +
                           memory * static_cast<double>(share->memory_mib) / mean_card_mib);
  }
};

// The memory that a pod says its share of each GPU needs; 0 = it follows the compute, or there is
// no share. Requires: memory by the card is in MiB (WithCompute).
inline std::int64_t ShareMemoryMib(const RequestShape& shape) {
  const auto* const share = std::get_if<GpuShare>(&shape.gpus);
  return share == nullptr ? 0 : share->memory_mib;
}

}  // namespace berth
