// SPDX-License-Identifier: Apache-2.0
//
// BestFit: prefers the node on which least is left over.
//
//   raw = 100 * (1 - (CPU left / 128 cores + GPU left / 8) / 2), truncated; then min-max over the
//   nodes
//
// The baseline "BestFit" of Weng et al., "Beware of Fragmentation", USENIX ATC'23.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class BestFit final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kMinMax; }
};

}  // namespace berth
