// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/node_health.h"

namespace berth {

Reason NodeHealth::Check(const Node& node, const RequestShape&) const {
  return node.spec().ready ? Reason::kFits : Reason::kNodeNotReady;
}

}  // namespace berth
