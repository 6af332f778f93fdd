// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/node_health.h"

namespace berth {

Reason NodeHealth::Check(const Node& node, const RequestShape& shape) const {
  if (!node.spec().ready) return Reason::kNodeNotReady;
  if (!shape.wants_gpu()) return Reason::kFits;
  if (!node.spec().gpu_condition.empty()) return Reason::kGpuCondition;
  return node.spec().refuses_gpu_pods ? Reason::kRefusesGpuPods : Reason::kFits;
}

}  // namespace berth
