// SPDX-License-Identifier: Apache-2.0
//
// WasteMeter: the idle GPU of a cluster, split by the cause that keeps the next GPU pod from using
// it.
//
// For one class of pods m (a request shape of the trace that asks for GPUs) the idle GPU of node n
// is put under the first of these that holds:
//
//   model    the node's GPU model will not do for m                          all of it
//   slots    m asks for k whole GPUs and fewer are wholly idle               the wholly idle ones
//   gaps     the same, and GPUs in part use                                  what is free on them
//            m asks for a share that no GPU has free                         all of it
//   cpu      GPUs would do, but the node's free CPU is too little            all of it
//   memory   the same with free memory                                      all of it
//   gaps     m fits: what is free on GPUs that are too small for it          that
//   usable   m fits                                                         the rest
//
// and the parts are the means over the classes, weighted by how many pods of the trace each has. So
// the six parts add up to the idle GPU. This is the fragmentation metric F_n(M) of Weng et al.,
// USENIX ATC'23, with memory as a cause of its own, over GPU pods only.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "bench/replay/trace.h"
#include "cluster/state/snapshot.h"

namespace berth::replay {

enum class IdleCause { kModel, kSlots, kGaps, kCpu, kMemory, kUsable };
constexpr std::size_t kIdleCauses = 6;
constexpr std::array<std::string_view, kIdleCauses> kIdleCauseNames = {"model", "slots",  "gaps",
                                                                       "cpu",   "memory", "usable"};

using IdleByCause = std::array<double, kIdleCauses>;  // GPUs, by IdleCause

// Immutable: any thread may use it.
class WasteMeter {
 public:
  explicit WasteMeter(const std::vector<TraceTask>& tasks);

  // All zero when no task asks for a GPU.
  [[nodiscard]] IdleByCause Measure(const Snapshot& snapshot) const;

 private:
  struct Class {
    RequestShape shape;
    double weight;  // of all GPU tasks; the sum is 1
  };

  static void Add(const Node& node, const Class& cls, IdleByCause& idle_milli);

  std::vector<Class> classes_;
};

}  // namespace berth::replay
