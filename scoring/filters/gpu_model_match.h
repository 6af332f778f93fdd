// SPDX-License-Identifier: Apache-2.0
//
// GpuModelMatch: a pod gets GPUs of the resource that it asks for, if there are several, a pod
// that names GPU models (annotation berth.dev/gpu-model) gets one of those models, and one that
// names GPUs by their UUIDs gets these.
#pragma once

#include "scoring/filter.h"

namespace berth {

class GpuModelMatch final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

}  // namespace berth
