// SPDX-License-Identifier: Apache-2.0
//
// DeviceFit: CPU, memory and GPUs of the node suffice. The filter first checks the empty node, then
// the node as it is, so that no pod is evicted for a pod that would not fit afterwards.
#pragma once

#include "scoring/filter.h"

namespace berth {

class DeviceFit final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

}  // namespace berth
