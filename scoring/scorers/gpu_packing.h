// SPDX-License-Identifier: Apache-2.0
//
// GpuPacking: fill GPUs that are shared already, then idle GPUs of nodes in use, then empty nodes.
//
//   GPUs in use suffice:  100 - sum(free % of the GPUs taken) / 10, at least 50
//   node in use:          50 - idle GPUs taken, at least 33
//   empty node:           33 - its GPUs, at least its GPUs
//   no GPU asked:         0
//
// The baseline "GpuPacking" of Weng et al., "Beware of Fragmentation", USENIX ATC'23.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class GpuPacking final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

}  // namespace berth
