// SPDX-License-Identifier: Apache-2.0
//
// RequestMix: the pods that are likely to come, as shapes with weights.
#pragma once

#include <vector>

#include "cluster/values/pod_request.h"

namespace berth {

struct RequestClass {
  RequestShape shape;  // scorers do not look at its main memory
  double weight = 0;   // > 0
  double draw = 1;     // how often it is drawn beside its weight (pod_draws.h); > 0
};

// Order matters: sums run over it, and their last bit can decide a tie. Weights sum to 1.
using RequestMix = std::vector<RequestClass>;

}  // namespace berth
