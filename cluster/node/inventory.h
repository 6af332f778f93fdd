// SPDX-License-Identifier: Apache-2.0
//
// The inventory of a node's physical GPUs: what its devices stand for. It is decided here, from all
// that is said of them, and nowhere else.
//
// These sources say how many GPUs there are, the most trusted first:
//
//   1. the UUIDs that the node's own agent has from the driver
//   2. the register of an agent that hands GPUs out
//   3. the replicas of each GPU, by the labels of the device plugin or of the cloud
//   4. the machine type, or the cloud's label of how many GPUs it has
//   5. a count label. GPU Feature Discovery's is of one product, the last of several: a node has at
//      least as many. Those of other vendors are of all GPUs.
//   6. the devices themselves, healthy or not
//
//   said                                        devices are          GPUs
//   parts of GPUs, or MIG devices               whole, or replicas where somebody says so
//   shared, or replicas above 1                 replicas             by 1, 2, 3, 4 or 5
//   1, 2 or 4 know half as many, or fewer       replicas             by 1, 2 or 4
//   1 or 2 know fewer, but more than half       whole: one fell off the bus
//   1 or 2 know as many or more, or 4 as many   whole
//   5 alone knows half as many, or fewer        replicas             by 5
//   nothing, and more devices than a node has   one replica each     not known
//   anything else                               whole
//
// Sources that exclude each other contradict each other: the smallest number counts, and nothing is
// whole. It is also a contradiction where GFD's count alone stands against the devices: several
// models look the same as replicas. A plugin that offers fewer GPUs than there are contradicts
// nobody.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace berth {

// What is said of the devices of one resource. 0: that source says nothing.
struct GpuEvidence {
  std::string resource = {};  // by its name
  std::int64_t devices = 0;   // without those that stand for partitioned GPUs
  std::int64_t uuids = 0;
  std::int64_t registered = 0;
  std::int64_t replicas = 0;  // of each GPU
  bool shared = false;        // somebody says that GPUs have several users
  std::int64_t machine = 0;
  std::int64_t labelled = 0;
  bool of_one_product = false;  // `labelled` is
  bool parts = false;           // each device is a fixed part of a GPU
};

struct GpuInventory {
  bool whole = true;      // each device is a GPU, or a fixed part of one
  std::int64_t gpus = 0;  // that the devices are on; 0 = not known
  // Which two numbers differ, and how to settle it; empty: none do.
  std::string contradiction = {};
};

GpuInventory TakeInventory(const GpuEvidence& said);

}  // namespace berth
