// SPDX-License-Identifier: Apache-2.0
//
// RunWords: what the pods of a replay say of how long they run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "bench/replay/time/stream.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

struct RunWords {
  double factor = 0;      // times the truth; 0: nothing is said
  bool promised = false;  // by activeDeadlineSeconds; else by berth.dev/expected-duration

  void Say(Millis runs, PodRequest& pod) const {
    if (factor == 0) return;
    const double seconds = std::ceil(factor * static_cast<double>(runs.count()) / 1000);
    const auto said =
        static_cast<std::int64_t>(std::clamp(seconds, 1.0, static_cast<double>(kMostRunSeconds)));
    (promised ? pod.deadline_seconds : pod.expected_seconds) = said;
    pod.grace_seconds = 0;
  }
};

}  // namespace berth::replay
