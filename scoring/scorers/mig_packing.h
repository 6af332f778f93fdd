// SPDX-License-Identifier: Apache-2.0
//
// MigPacking: place MIG devices where GPUs lose the least of their remaining ways to be
// partitioned.
//
//   cost = 0.5 f             devices that there are (static): of use to nobody else
//        = 1 + loss + 0.001 f devices that are cut for the pod (dynamic); loss: of the plan
//                             (mig/mig_plan.h)
//   f    = the part of the node's cut GPUs that is free afterwards
//
// in GPUs, and the raw score is -cost in steps of 0.0005. So an existing instance takes precedence
// over creating one, and among equals the fullest node wins, so that others can be emptied and
// repartitioned. Applies only to pods with MIG devices.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class MigPacking final : public Scorer {
 public:
  static constexpr int kPointsPerGpu = 2000;

  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] bool Applies(const RequestShape& shape) const override {
    return shape.mig() != nullptr;
  }
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
};

}  // namespace berth
