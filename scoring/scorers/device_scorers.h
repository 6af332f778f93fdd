// SPDX-License-Identifier: Apache-2.0
//
// LinkQuality and NumaLocality: prefer nodes on which a pod's GPUs are well linked.
//
//   link-quality   100 * quality of the set / that of the best set of its size in the machine
//                  (topology/links/set_table.h)
//   numa-locality  100 * fewest NUMA groups that so many GPUs of the machine can have / those that
//                  the set has
//
// Truncated. 100 for pods with fewer than two GPUs, and on nodes whose links are not known: these
// count as alike, as they do to the device picker.
#pragma once

#include <optional>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

class LinkQuality final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

class NumaLocality final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

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
