// SPDX-License-Identifier: Apache-2.0
//
// Whether the devices that a pod's annotation names are believed. Whoever may write a pod may write
// its annotations, so that these are evidence and not the truth:
//
// - The devices that a pod is known to have, because it was bound here or because its annotation
//   said so when it was first seen, stay what they are. An annotation that says something else is
//   reported; it may only say in detail what was known in part (which MIG device of a profile).
// - Devices that are seen first are believed if the node has them, where the node is known, and no
//   other pod is known to hold them. Otherwise the pod counts as one that does not say what it has
//   (assumed_grants.h), until there is room for what it says.
#pragma once

#include <string>
#include <string_view>

#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_record.h"

namespace berth {

// A pod whose annotation is not believed.
struct DeviceDispute {
  PodId pod;
  std::string problem;  // what it says, and why that is not believed
  friend bool operator==(const DeviceDispute&, const DeviceDispute&) = default;
};

bool HasDevices(const Placement& placement);
// Whether `said` is `known` with more detail.
bool Specifies(const Placement& known, const Placement& said);

// Why that node cannot have given the devices; "" = it can.
std::string WhyNotOnNode(const Placement& said, const NodeSpec& node);
// Why the pod cannot have the devices beside the pods that the node has; "" = it can. Its own
// record is passed over. node: nullptr = not known.
std::string WhyNotBeside(const Placement& said, std::string_view uid, const PodRecords& pods,
                         const NodeSpec* node);

// "GPU 0, GPU 3 (500 milli)".
std::string DevicesText(const Placement& placement);

}  // namespace berth
