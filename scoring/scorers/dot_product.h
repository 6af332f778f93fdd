// SPDX-License-Identifier: Apache-2.0
//
// DotProduct: prefers the node whose free resources point least in the direction of the request.
//
//   score = 100 * (1 - (free . asked) / 2), truncated,   vectors (CPU / 128 cores, GPU / 8)
//
// The baseline "DotProd" of Weng et al., "Beware of Fragmentation", USENIX ATC'23, after Grandl et
// al., "Multi-resource packing for cluster schedulers", SIGCOMM'14.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class DotProduct final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

}  // namespace berth
