// SPDX-License-Identifier: Apache-2.0
//
// The whole GPUs that NVIDIA's driver publishes for a node, and in which order kube-scheduler gives
// them to pods that ask for the resource of a DeviceClass. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cluster/claims/device_offers.h"
#include "cluster/node/mig_library.h"
#include "cluster/node/slice_gpus.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/dra_json.h"

namespace berth::dialects {

// A resource, and which devices its class accepts.
struct MatchByName {
  std::string resource;
  ClassMatch match;
};

struct FoundGpus {
  SliceGpus gpus;
  std::string problem;  // why none of them, or not by every resource, are counted; empty = nothing
};

inline constexpr std::size_t kMostDevicesOfNode = 8192;

// Whether the driver calls it a whole GPU.
bool IsWholeGpu(const PublishedDevice& device);
// The slice without other devices.
PublishedSlice WholeGpusOf(const PublishedSlice& slice);

// The GPUs by the number in their names, else as published. Those of a pool that is not usable, or
// with a taint that keeps claims away, are not healthy. A resource whose class accepts something
// else than whole GPUs with UUIDs, or devices that several claims may share, is left to
// kube-scheduler, and so are all of a node that has more devices than kMostDevicesOfNode or more
// GPUs than a node can have. Links: those of the product catalogue, with the NUMA nodes that the
// devices say.
FoundGpus ReadWholeGpus(const DevicePools& pools, std::span<const MatchByName> names,
                        LinkLibrary& library);

// What the devices of a DRA pool offer to cut: per GPU the product of the catalogue whose profiles,
// starts and memory units they are (topology/mig/mig_product.h), and which of its placements there
// are.

// A product as GPU Feature Discovery writes it into a label.
std::string LabelOfProduct(std::string name);

struct FoundOffers {
  OfferedGpus gpus;     // nothing taken; in the order of the devices
  std::string problem;  // the GPUs that were passed over, and why; empty = none
};

// GPUs are told apart by UUID, else by index. Only devices that consume memory slices count: an
// instance that is there for good has none. Where several products would do, the one that the
// device names, else the first of the catalogue. A tainted device is not offered, nor one that
// several claims may share: its allocator says how much.
FoundOffers ReadMigOffers(const std::string& pool, std::span<const GpuDevice* const> devices);

}  // namespace berth::dialects
