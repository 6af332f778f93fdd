// SPDX-License-Identifier: Apache-2.0
//
// What a node's GPUs are: their model and memory, from the first of
//
//   1. the configured labels (nodeLabels), which are NVIDIA's unless others are set
//   2. the labels of the vendor whose resource counts, and the chip or part that its name says
//   3. the machine types that are known (topology/known_machine_types.h), where the node has as
//      many GPUs as its type: fewer or more are MIG devices, or GPUs that are shared
//   4. for the memory, the catalogue of products (topology/gpu_model.h)
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cluster/values/labels.h"
#include "config/config.h"
#include "server/wire/pod/dialect.h"
#include "topology/gpu_vendor.h"
#include "topology/known_machine_types.h"

namespace berth::wire {

struct NodeGpuFacts {
  std::string model;            // empty = not known
  std::int64_t memory_mib = 0;  // of what a pod gets that asks for one; 0 = not known
  // One of the resource is a fixed part of a GPU: a partition, a virtual NPU.
  bool parts = false;
  std::string problem;  // a vendor's label that cannot be read, with its key; empty = none
};

// How many GPUs the vendor's labels say that there are; 0 = they do not.
int LabelledGpus(const Labels& labels, const GpuVendor& vendor);

// Whether the labels say that the machine has GPUs, which nobody on it may offer yet.
bool IsGpuMachine(const Labels& labels, const MachineTypes& types);

// counted: the resource by which the node has GPUs; nullptr = none. Error: kInvalidArgument with
// the key, for a configured label that cannot be read.
Result<NodeGpuFacts> ReadNodeGpuFacts(const Labels& labels, const NodeLabelKeys& keys,
                                      const MachineTypes& types, const DeviceCount* counted);

}  // namespace berth::wire
