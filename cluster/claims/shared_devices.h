// SPDX-License-Identifier: Apache-2.0
//
// SharedDevices: what devices of all nodes have in common is kept once: attributes, capacities, and
// the counters that they consume. A node with eight GPUs that can be partitioned publishes some 200
// devices, the same as every other node of its kind but for UUIDs and addresses.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "cel/shared_values.h"
#include "cluster/claims/node_devices.h"

namespace berth {

// One thread at a time; slices that were shared may be read by others meanwhile.
class SharedDevices {
 public:
  void Share(PublishedSlice& slice);

 private:
  cel::SharedValues values_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const ConsumedCounters>> counters_;
  std::size_t sweep_at_ = 1024;
};

// About what the slice takes by itself, beside what it may share with others.
std::size_t OwnBytes(const PublishedSlice& slice);

}  // namespace berth
