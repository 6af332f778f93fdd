// SPDX-License-Identifier: Apache-2.0
//
// DevicePicker: which devices of one node a pod could get. Filter, prioritize and bind all ask
// here, so that what was scored is what is bound. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

// How a share finds its GPU. Whole GPUs are always the idle ones that GpuLinks::Choose takes, in
// view of who holds the others; the lowest indices where the node's links are not known.
//
// "First": where the links are known, the GPU that others miss least: one in use rather than an
// idle one, of idle ones that which leaves the rest worth most, else the one with the least
// bandwidth to the idle ones; then, and where the links are not known, the lowest index.
enum class DeviceRule {
  kFirst,      // the lowest index that fits, whatever the links
  kTightest,   // the least free that fits; the first among equals
  kBestScore,  // every GPU that fits is offered to the scorers; the first among equals
  kRandom,     // any that fits, drawn by a hash of the node and what is free on it
};

// What the share takes of GPU `gpu` of this node: both amounts filled in, the open one in
// proportion. Empty when the GPU can never hold it: not healthy, too small, or asked by memory that
// is not known.
std::optional<DeviceChoice> ShareOn(const Node& node, int gpu, const GpuShare& share);

// Whether GPU `gpu` can be given whole now: open, and nobody has any of its compute or memory.
bool IsIdle(const Node& node, int gpu);

// The GPUs that are idle.
std::uint64_t IdleGpus(const Node& node);

// Whether GPU `gpu` has that much free now.
bool HasFree(const Node& node, int gpu, const DeviceChoice& choice);

// How many of the node's GPUs a pod gets that asks for MIG devices without naming a profile, on a
// node on which each device counts as a GPU (MigSpec::single) and is enough for it; else 0.
int GpusInsteadOfMig(const Node& node, const RequestShape& shape);

// The choices worth scoring, never more than one per GPU; GPUs with equal free amounts are offered
// once. Empty when the pod does not fit; one empty choice for a pod without GPU, for one with MIG
// devices (which it gets is not up to the rule, mig/mig_plan.h), and for one that gets a place on
// GPUs with several users.
std::vector<DeviceChoice> DeviceChoices(const Node& node, const RequestShape& shape,
                                        DeviceRule rule);

// How many pods that ask for `count` whole GPUs find them one after the other. Requires: count > 0.
int WholeChoicesInTurn(const Node& node, int count, const LinkAsk& ask);

// The placement that a choice stands for.
Placement PlacementFor(const Node& node, const RequestShape& shape, const DeviceChoice& choice);

}  // namespace berth
