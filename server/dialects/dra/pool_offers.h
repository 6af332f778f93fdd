// SPDX-License-Identifier: Apache-2.0
//
// What the devices of a DRA pool offer to cut: per GPU the product of the catalogue whose profiles,
// starts and memory units they are (topology/mig/mig_catalog.h), and which of its placements there
// are.
#pragma once

#include <span>
#include <string>

#include "cluster/claims/mig_offers.h"
#include "server/dialects/dra/dra_json.h"

namespace berth::dialects {

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
