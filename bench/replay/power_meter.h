// SPDX-License-Identifier: Apache-2.0
//
// PowerMeter: the estimated power of all nodes of a cluster (bench/power/power.h),
// moment after moment.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/state/snapshot.h"

namespace berth::replay {

// Not thread-safe.
class PowerMeter {
 public:
  // Watts of all nodes of known power. Cheap if few nodes changed since the last call. Requires:
  // the same nodes as at the last call.
  std::int64_t Watts(const std::shared_ptr<const Snapshot>& cluster);

 private:
  std::shared_ptr<const Snapshot> last_;
  std::vector<int> of_node_;
  std::int64_t sum_ = 0;
};

// Number of GPUs on nodes of unknown power.
std::int64_t GpusWithoutWatts(const Snapshot& cluster);

}  // namespace berth::replay
