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

}  // namespace berth
