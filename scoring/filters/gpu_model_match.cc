// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/gpu_model_match.h"

namespace berth {

Reason GpuModelMatch::Check(const Node& node, const RequestShape& shape) const {
  if (!shape.wants_gpu() || shape.Admits(node.spec().gpu_model)) return Reason::kFits;
  return node.gpus().empty() && !node.spec().mig.known() ? Reason::kNoGpu : Reason::kModelMismatch;
}

}  // namespace berth
