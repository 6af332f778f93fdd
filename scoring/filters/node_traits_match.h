// SPDX-License-Identifier: Apache-2.0
//
// NodeTraitsMatch: the node has all traits that the pod's workload class requires, and none that it
// forbids.
#pragma once

#include "scoring/filter.h"

namespace berth {

class NodeTraitsMatch final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

}  // namespace berth
