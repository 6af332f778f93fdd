// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a node's GPU resources stand for.
//
// The kubelet says of each resource how many devices there are (status.capacity) and how many of
// them are healthy (status.allocatable). A device is a whole GPU, or a place on one that has
// several users, where any of this holds:
//
//   label nvidia.com/gpu.replicas above 1, or nvidia.com/gpu.sharing-strategy other than none
//   the product ends in -SHARED, or the resource in .shared
//   twice as many allocatable devices as label nvidia.com/gpu.count knows GPUs (but under MIG's
//   strategy single). A few more than it knows are no sign: a GPU may have fallen off the bus.
//   more devices than kMaxGpusPerNode
//   HAMi's agent announces it for several users (hami_mig.h)
//
// What HAMi's agent serves is its scheduler's to give, whether shared or not. (Labels as GPU
// Feature Discovery 0.20 writes them.) A node has GPUs of one resource: of several, that with the
// most allocatable, and it is told that the others do not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/labels.h"
#include "cluster/node.h"

namespace berth::wire {

struct DeviceCount {
  std::string resource;  // "nvidia.com/gpu"
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
};

// Views: valid during the call.
struct GpuFacts {
  const Labels& labels;
  std::string_view product;          // of the label
  std::vector<DeviceCount> devices;  // by configured resource, in its order; none below 0
  std::int64_t cut_by_hami = 0;      // of the devices, those that stand for GPUs that HAMi cuts
  bool served_by_hami = false;       // the others are HAMi's to give,
  bool shared_by_hami = false;       // to several users each
};

struct NodeGpus {
  int gpus = 0;  // whole ones
  GpuPlaces places;
  int missing = 0;       // of either
  std::string resource;  // "" without any
  std::string problem;   // what was passed over; empty = nothing
};

NodeGpus ReadNodeGpus(const GpuFacts& facts);

}  // namespace berth::wire
