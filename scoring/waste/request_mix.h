// SPDX-License-Identifier: Apache-2.0
//
// RequestMix: the pods that are likely to come, as shapes with weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct RequestClass {
  RequestShape shape;
  double weight = 0;  // > 0
  double draw = 1;    // how often it is drawn beside its weight (pod_draws.h); > 0
};

// Order matters: sums run over it, and their last bit can decide a tie. Weights sum to 1.
using RequestMix = std::vector<RequestClass>;

// ModelGroups: GPU models as a request mix distinguishes them. One group per model that a class of
// the mix names, and a last one for every other model. Immutable.

class ModelGroups {
 public:
  explicit ModelGroups(const RequestMix& mix);

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::size_t GroupOf(std::string_view model) const {
    std::size_t index = 0;
    while (index + 1 < groups_.size() && groups_[index].model != model) ++index;
    return index;
  }
  // [class of the mix] whether it takes GPUs of that group.
  [[nodiscard]] const std::vector<std::uint8_t>& Admits(std::size_t group) const {
    return groups_[group].admits;
  }

 private:
  struct Group {
    std::string model;  // empty: every other one
    std::vector<std::uint8_t> admits;
  };
  std::vector<Group> groups_;
};

// WasteParameters: the numbers of the scorer expected-waste. Plain values; one setting is meant to
// do for every cluster.
struct WasteParameters {
  // How the waste of a node is estimated (pod_draws.h).
  int fills = 16;      // 1..256: imagined fillings whose mean is taken; time grows with it
  int patience = 100;  // 1..400: GPU pods in a row that do not fit, after which a filling ends
  int settled_patience = 4;  // 1..400: the same in a cluster that is in balance
  double optimism = 0.25;    // 0 or more GPUs: fillings that leave less by so much count e times as
                             // much, since the pods that suit a node do come; 0: all count the same
  double coverage = 0.99;    // above 0, to 1: the most frequent classes that make up this share of
                             // the pods are drawn from

  double fragmentation = 0;          // 0 or more: the weight of a GPU that the next pod cannot use
                                     // (scorers/scorers.h), beside one that is left in the end
  double settled_fragmentation = 3;  // the same in a cluster that is in balance

  // What scarce goods cost (market.h).
  double scarcity_exponent = 12;  // above 0: how steeply the price of a multi-GPU slot rises
  double scarcity_limit = 4;      // 0 or more GPUs: the most that a GPU of the slot costs
  double share_price = 0.02;  // 0 or more GPUs: what room for a large share, per GPU of it, costs
                              // when as much is asked for as there is; where memory is counted
  double model_price = 0.45;  // 0 or more GPUs: what a GPU of a model costs when the demand that
                              // can only go there equals what is free of it

  // Not configured, but found: by AtTurnover, and by how many pods have come (market.h).
  double slot_price = 0.001;  // 0 or more GPUs: what a slot for pods of a kind that has not come
                              // costs where much of the cluster is free
  double least_slot_price = 0.001;  // 0 or more GPUs: what it costs at least

  double best_fit = 0;  // 0 or more GPUs: what an empty largest node costs more than a full one
  double settled_best_fit = 0.5;  // the same in a cluster that is in balance

  friend bool operator==(const WasteParameters&, const WasteParameters&) = default;
};

// The parameters for a cluster in which `turnover` of the pods that come replace one that has left:
// 0 where it fills up, 1 where it is in balance. What a node waits for is then worth less, because
// the node will change before it comes: the patience goes from `patience` to `settled_patience`, in
// equal ratios, `fragmentation` and `best_fit` also in equal steps, and the optimism to 0. Best fit
// counts because a node with little on it empties soon if the others take what comes. A quarter
// replaced is as much as all: long before a cluster is in balance most nodes change before they
// are full.
//
// used: how much of the cluster's GPU is in use. Where there is room for all that comes - up to
// half is used - a node is not about to change: all of that counts less, in full from four fifths
// on. But a cluster that has room and in which pods come and go does not fill up, so that packing
// loses nothing: slot_price rises instead. Requires: 0 <= turnover, used <= 1.
WasteParameters AtTurnover(WasteParameters parameters, double turnover, double used = 1);

// Turnover: the share of arriving GPU pods that replace one that has left - 0 while a cluster fills
// up, 1 when it is in balance.
//
// Sampled now and then; with each sample the older observations count half as much. Not
// thread-safe.

class Turnover {
 public:
  // How many have come and gone so far; both only grow, from any beginning.
  void Look(double arrived, double departed) {
    if (looked_) {
      arrivals_ = arrivals_ / 2 + (arrived - arrived_);
      departures_ = departures_ / 2 + (departed - departed_);
    }
    looked_ = true;
    arrived_ = arrived;
    departed_ = departed;
  }

  [[nodiscard]] double share() const {  // 0..1
    return arrivals_ > 0 ? std::clamp(departures_ / arrivals_, 0.0, 1.0) : 0;
  }

 private:
  bool looked_ = false;
  double arrived_ = 0, departed_ = 0;     // at the last look
  double arrivals_ = 0, departures_ = 0;  // since, the older ones reduced
};

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
