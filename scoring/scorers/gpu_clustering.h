// SPDX-License-Identifier: Apache-2.0
//
// GpuClustering: pods that ask for the same number of GPUs keep together.
//
//   score = 25 * (8 - free GPUs) / 8 + 75 where only pods of the same kind run
//                                    + 50 where such pods run among others
//                                    + 25 where no GPU pod runs
//                                    +  0 elsewhere, and 0 in all for a pod without GPU
//
// The kind is the number of whole GPUs, or "share". The baseline "GpuClustering" of Weng et al.,
// "Beware of Fragmentation", USENIX ATC'23.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class GpuClustering final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

}  // namespace berth
