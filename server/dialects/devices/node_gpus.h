// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a node's GPU resources stand for, whichever vendor made the GPUs.
//
// The kubelet says of each resource how many devices there are (status.capacity) and how many of
// them are healthy (status.allocatable). Whether a device is a GPU, a fixed part of one that counts
// as one (topology/gpu_vendor.h), or a place on a GPU that has several users, is for the inventory
// to say (cluster/node/inventory.h). Its evidence here: berth.dev/gpu-uuids, the vendor's count
// label, the machine type, another dialect (GpuDraft::shared_by_other, registered), and of NVIDIA's
// and of a vendor that is not known
//
//   nvidia.com/gpu.replicas, nvidia.com/gpu.sharing-strategy other than none
//   cloud.google.com/gke-max-shared-clients-per-gpu, gke-gpu-sharing-strategy
//   cloud.google.com/gke-gpu-partition-size
//   the product ends in -SHARED, or the resource in .shared
//
// More GPUs than kMaxGpusPerNode are places for one user each. Each place has its part of the
// memory. How they are kept apart is said by the sharing strategy, else by mps.capable, and not at
// all by other vendors. Of MPS the places beyond its most clients on a GPU do not count: 48, and 60
// from driver 610 on.
// (NVIDIA, Multi-Process Service, Client-Server Connection Limits; the device plugin refuses more
// than 48: cmd/mps-control-daemon/mps/device.go at b5b9ab7.)
//
// What the agent of another scheduler serves is that one's to give, whether shared or not. (Labels
// as GPU Feature Discovery 0.20 writes them.) Of several resources
// Berth chooses GPUs of that of wire::CountedOf. Others are counted beside it (GpuDraft::others).
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// Fills in the outcome.
void CountNodeGpus(const wire::NodeFacts& facts, wire::GpuDraft& draft);

// What the device plugins of all vendors say by numbers alone: node_gpus.h. Asked after the agents
// that hand out the GPUs of a node in their own way.
std::unique_ptr<const wire::Dialect> MakeDevices();

}  // namespace berth::dialects
