// SPDX-License-Identifier: Apache-2.0
//
// DeviceFit: CPU, memory and GPUs of the node suffice. The filter first checks the empty node, then
// the node as it is, so that no pod is evicted for a pod that would not fit afterwards.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class DeviceFit final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

// NodeHealth: the node can run new pods.
class NodeHealth final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

// NodeTraitsMatch: the node has all traits that the pod's workload class requires, and none that it
// forbids.

class NodeTraitsMatch final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

// GpuModelMatch: a pod gets GPUs of the resource that it asks for, if there are several, a pod that
// names GPU models (annotation berth.dev/gpu-model) gets one of those models, and one that names
// GPUs by their UUIDs gets these.
class GpuModelMatch final : public Filter {
 public:
  [[nodiscard]] Reason Check(const Node& node, const RequestShape& shape) const override;
};

}  // namespace berth
