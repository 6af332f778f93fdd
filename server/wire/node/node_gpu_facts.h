// SPDX-License-Identifier: Apache-2.0
//
// What a node's GPUs are, unless their register or the driver says it of each
// (agent_annotations.h): their model and memory, from the first of
//
//   1. the configured labels (nodeLabels), which are NVIDIA's unless others are set
//   2. the labels of the vendor whose resource counts, and the chip or part that its name says
//   3. the machine types that are known (topology/machine_types.h), where the node has as many
//      devices as its type has GPUs: fewer or more are MIG devices, or GPUs that are shared
//   4. for the memory, the catalogue of products (topology/gpu_vendor.h)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/node_constraints.h"
#include "config/config.h"
#include "server/wire/pod/dialect.h"
#include "topology/gpu_vendor.h"
#include "topology/machine_types.h"

namespace berth::wire {

struct NodeGpuFacts {
  std::string model;            // empty = not known
  std::int64_t memory_mib = 0;  // of what a pod gets that asks for one; 0 = not known
  // One of the resource is a fixed part of a GPU: a partition, a virtual NPU.
  bool parts = false;
  int of_product = 0;  // how many GPUs are of the labelled product, the last of several; 0 = all
  std::int64_t machine_gpus = 0;  // of the counted vendor, by the machine; 0 = not known
  std::string problem;            // labels that cannot be read, with their keys; empty = none
};

// By which GKE says that each device is a MIG device of that profile.
inline constexpr std::string_view kGkePartitionLabel = "cloud.google.com/gke-gpu-partition-size";

// The number that a label says; nothing where it is not there, or empty. problem: that it is none.
std::optional<std::int64_t> CountLabel(const Labels& labels, std::string_view key,
                                       std::string& problem);

// How many GPUs the vendor's labels say that there are; 0 = they do not.
int LabelledGpus(const Labels& labels, const GpuVendor& vendor);

// Whether the labels say that the machine has GPUs, which nobody on it may offer yet.
bool IsGpuMachine(const Labels& labels, const MachineTypes& types);

// What to do where somebody wants MIG devices of a node that has none, by its labels; "": nothing
// that they tell.
std::string CureOfNoMig(const NodeSpec& spec);

// counted: the resource by which the node has GPUs; nullptr = none. What a label that cannot be
// read would say is not known.
NodeGpuFacts ReadNodeGpuFacts(const Labels& labels, const NodeLabelKeys& keys,
                              const MachineTypes& types, const DeviceCount* counted);

}  // namespace berth::wire
