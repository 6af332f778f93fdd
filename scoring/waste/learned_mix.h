// SPDX-License-Identifier: Apache-2.0
//
// LearnedMix: the request mix observed from the pods that arrive; older pods are slowly forgotten.
//
// A class is a pod shape without its memory, its links, its workload and what it wishes of nodes.
// Every pod counts 1 when it arrives and half of that `half_life` pods later: this follows a mix
// that drifts, and needs no clock. The mix is published in epochs, so that tables on it are built
// rarely: at first after every pod, then each time that the number of pods has grown by two fifths,
// and in the long run every `longest_epoch` pods. Before the first pod it is empty.
//
// A function of the pods, in their order. Bounded: of more than kMaxClasses classes the rarest are
// dropped. Any thread may call it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "scoring/waste/request_mix.h"

namespace berth {

struct LearningParameters {
  int half_life_pods = 8000;      // >= 1
  int longest_epoch_pods = 2000;  // >= 1
  friend bool operator==(const LearningParameters&, const LearningParameters&) = default;
};

class LearnedMix {
 public:
  static constexpr std::size_t kMaxClasses = 512;

  struct Epoch {
    std::uint64_t number = 0;
    std::shared_ptr<const RequestMix> mix;  // most frequent first
    std::int64_t pods = 0;                  // that had arrived when it began
    std::int64_t gpu_pods = 0;              // of those that were observed: with GPUs
  };
  // What has been learned, as a value that can be kept: weights are pods, the older ones reduced;
  // the memory of a shape is the mean of its class.
  struct Memory {
    std::int64_t pods = 0;  // that have arrived, ever
    std::vector<RequestClass> classes;
  };

  explicit LearnedMix(const LearningParameters& parameters);
  // A copy that learns by itself from now on.
  LearnedMix(const LearnedMix& other) BERTH_EXCLUDES(other.mutex_);
  LearnedMix& operator=(const LearnedMix&) = delete;

  // A pod has arrived; a retry is not an arrival. Pods with MIG devices are ignored: they leave no
  // GPU idle that others could use. Requires: a share has its compute (WithCompute).
  void Observe(const RequestShape& shape) BERTH_EXCLUDES(mutex_);

  [[nodiscard]] Epoch Current() const BERTH_EXCLUDES(mutex_);

  [[nodiscard]] Memory Remember() const BERTH_EXCLUDES(mutex_);
  // Continues from the memory of another one, in a new epoch. Weights must be above 0.
  void Restore(const Memory& memory) BERTH_EXCLUDES(mutex_);

 private:
  struct Count {
    double pods = 0;          // in units of unit_
    double memory_bytes = 0;  // sum over them
  };

  void Add(const RequestShape& shape, double pods) BERTH_REQUIRES(mutex_);
  void DropRare() BERTH_REQUIRES(mutex_);
  void BeginEpoch() BERTH_REQUIRES(mutex_);
  [[nodiscard]] std::vector<RequestClass> Classes(double unit) const BERTH_REQUIRES(mutex_);

  const LearningParameters parameters_;
  const double growth_;  // of unit_ per pod
  mutable Mutex mutex_;
  // The keys are shapes without memory. Instead of making every count smaller, a new pod counts
  // more.
  std::map<RequestShape, Count> counts_ BERTH_GUARDED_BY(mutex_);
  double unit_ BERTH_GUARDED_BY(mutex_) = 1;  // what a pod counts now
  std::int64_t pods_ BERTH_GUARDED_BY(mutex_) = 0;
  std::int64_t gpu_pods_ BERTH_GUARDED_BY(mutex_) = 0;
  std::int64_t epoch_ends_ BERTH_GUARDED_BY(mutex_) = 1;  // at so many pods
  Epoch epoch_ BERTH_GUARDED_BY(mutex_);
};

// The pods that are on nodes, as if each had just arrived: the substitute if the arrivals are
// unknown. Long-running pods are more frequent among them than among arrivals, so all together they
// weigh at most `most` pods.
LearnedMix::Memory BoundPods(const Snapshot& snapshot, double most);

// The shape as a class of a mix: a share asked by memory alone gets the compute that goes with it
// on the first GPU of the snapshot, by node name, that could hold it; all of a GPU if there is
// none. Memory in thousandths becomes that of this GPU.
RequestShape WithCompute(RequestShape shape, const Snapshot& snapshot);

}  // namespace berth
