// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <cstdint>

#include "cluster/values/pod_request.h"
#include "scoring/waste/gpu_state.h"

namespace berth {

// A value. WorthOf (fleet_mix.h) makes it of a mix.
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
