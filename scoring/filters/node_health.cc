// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/node_health.h"

namespace berth {

Reason NodeHealth::Check(const Node& node, const RequestShape& shape) const {
  if (!node.spec().ready) return Reason::kNodeNotReady;
  const bool refused = node.spec().refuses_gpu_pods && shape.wants_gpu();
  return refused ? Reason::kRefusesGpuPods : Reason::kFits;
}

}  // namespace berth
