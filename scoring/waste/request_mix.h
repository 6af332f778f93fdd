// SPDX-License-Identifier: Apache-2.0
//
// RequestMix: the pods that are likely to come, as shapes with weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

  double fragmentation = 0;  // 0 or more: the weight of a GPU that the next pod cannot use
                             // (fragmentation_gradient.h), beside one that is left in the end
  double settled_fragmentation = 3;  // the same in a cluster that is in balance

  // What scarce goods cost (market.h).
  double scarcity_exponent = 12;  // above 0: how steeply the price of a multi-GPU slot rises
  double scarcity_limit = 4;      // 0 or more GPUs: the most that a GPU of the slot costs
  double share_price = 0.02;  // 0 or more GPUs: what room for a large share, per GPU of it, costs
                              // when as much is asked for as there is
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

}  // namespace berth
