// SPDX-License-Identifier: Apache-2.0
//
// Turnover: the share of arriving GPU pods that replace one that has left - 0 while a cluster fills
// up, 1 when it is in balance.
//
// Sampled now and then; with each sample the older observations count half as much. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

namespace berth {

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
