// SPDX-License-Identifier: Apache-2.0
//
// WasteReport: how much of a cluster's free GPU compute the likely pods cannot use, and why.
//
// Per GPU model two sums over the nodes, in thousandths of a GPU:
//
//   expected waste   W, what will be left idle (pod_draws.h)
//   fragmentation    FGD's metric (scorers/scorers.h): for each class of the mix, by
//                    its weight, the free GPU of the node that it cannot use, booked under the
//                    first cause that holds:
//     no_gpu_asked     the class asks for none: all of it
//     model            the model is not admitted: all of it
//     gpu_share        a share finds no GPU with so much free: all of it; or, if it fits, the GPUs
//                      with less
//     whole_gpu_slots  the same for whole GPUs
//     cpu              the GPUs are there, the CPU is not: all of it
//     memory           the same for memory (the mean of the class): the only part that FGD's metric
//                      does not have
//
// The result of a node is kept until the node or the epoch of the mix changes.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "scoring/waste/pod_draws.h"
#include "scoring/waste/request_mix.h"

namespace berth {

enum class FragmentCause { kNoGpuAsked, kModel, kGpuShare, kWholeGpuSlots, kCpu, kMemory };
constexpr std::size_t kFragmentCauses = 6;
// "no_gpu_asked", "model", ...
std::string_view NameOf(FragmentCause cause);

struct Waste {
  double expected_milli = 0;
  std::array<double, kFragmentCauses> fragment_milli{};  // by cause
};

// Any thread may call it.
class WasteReport {
 public:
  explicit WasteReport(const WasteParameters& parameters) : parameters_(parameters) {}

  // By GPU model.
  std::map<std::string, Waste> Of(const std::shared_ptr<const Snapshot>& snapshot,
                                  const LearnedMix::Epoch& epoch) BERTH_EXCLUDES(mutex_);

 private:
  static constexpr int kRounds = 6;  // of calibration, per epoch

  void Measure(NodeIndex index, const Node& node) BERTH_REQUIRES(mutex_);

  const WasteParameters parameters_;
  Mutex mutex_;
  LearnedMix::Epoch epoch_ BERTH_GUARDED_BY(mutex_);
  RequestMix calibrated_ BERTH_GUARDED_BY(mutex_);
  std::unique_ptr<const WastePotential> potential_ BERTH_GUARDED_BY(mutex_);  // of the epoch
  std::shared_ptr<const Snapshot> snapshot_ BERTH_GUARDED_BY(mutex_);
  std::vector<Waste> by_node_ BERTH_GUARDED_BY(mutex_);  // of the snapshot
};

// FGD's metric of one node; every class as the mix has it.
std::array<double, kFragmentCauses> FragmentByCause(const Node& node, const RequestMix& mix);

}  // namespace berth
