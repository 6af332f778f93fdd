// SPDX-License-Identifier: Apache-2.0
//
// NodeHealth: the node can run new pods.
#pragma once

#include "scoring/filter.h"

namespace berth {

class NodeHealth final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

}  // namespace berth
