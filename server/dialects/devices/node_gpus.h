// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a node's GPU resources stand for, whichever vendor made the GPUs.
//
// The kubelet says of each resource how many devices there are (status.capacity) and how many of
// them are healthy (status.allocatable). A device is a GPU, or a fixed part of one that counts as
// one (topology/gpu_vendor.h), or a place on a GPU that has several users, where any of this holds:
//
//   twice as many allocatable devices as the vendor's label of their number knows GPUs (but under
//   MIG's strategy single, and of parts). A few more are no sign: one may have fallen off the bus
//   more devices than kMaxGpusPerNode
//   another dialect has said so (GpuDraft::shared_by_other)
//   of NVIDIA's, and of a vendor that is not known:
//     label nvidia.com/gpu.replicas above 1, or nvidia.com/gpu.sharing-strategy other than none
//     the product ends in -SHARED, or the resource in .shared
//
// Places are on as many GPUs as nvidia.com/gpu.replicas, else the label of their number says, and
// each has its part of the memory. How they are kept apart is said by gpu.sharing-strategy, else by
// mps.capable, and not at all by other vendors. Of MPS the places beyond its most clients on a GPU
// do not count: 48, and 60 from driver 610 on.
// (NVIDIA, Multi-Process Service, Client-Server Connection Limits; the device plugin refuses more
// than 48: cmd/mps-control-daemon/mps/device.go at b5b9ab7.)
//
// What the agent of another scheduler serves is that one's to give, whether shared or not. (Labels
// as GPU Feature Discovery 0.20 writes them.) A node has GPUs of one resource: of several, that of
// wire::CountedOf, and a problem says that the others do not count.
#pragma once

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// Fills in the outcome.
void CountNodeGpus(const wire::NodeFacts& facts, wire::GpuDraft& draft);

}  // namespace berth::dialects
