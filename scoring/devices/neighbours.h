// SPDX-License-Identifier: Apache-2.0
//
// Neighbours: how well GPUs of a node suit a pod to which it matters what is beside them
// (RequestShape::neighbours, beside_nic). By precedence:
//
//   far    what a GPU shares with those of pods that the selector selects: nothing, the NUMA group,
//          the PCIe root, the GPU itself (it gets a part). Least is best.
//   near   what it shares with the nearest of them: the GPU or a fabric link, the PCIe root, the
//          NUMA group, the node. Most is best.
//   NIC    the best relation to one: under one PCIe root, in one NUMA group, another one.
//
// Nothing of this is a condition: a pod that cannot have the best gets the next best. `far` and
// `near` choose the node too (Behind), a NIC the GPUs of a node alone: which nodes
// have RDMA is a trait. Where the links of a node are unknown all its GPUs are as near to each
// other as can be, for `far`, and share the node alone, for `near`. Pods that were told to end are
// nobody's neighbours; the GPUs of a pod are those of its own ResourceClaims too. Where it is not
// Berth that chooses the GPUs (places, MIG devices), or where those of a neighbour are unknown, its
// neighbours may be on any.
//
// Why: two pods that load data into GPUs under one PCIe root halve each other's throughput
// (ai-dynamo/dynamo issue 10171). Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"

namespace berth {

// Whether it matters to the pod which of the GPUs that it could have it gets.
inline bool MindsNeighbours(const RequestShape& shape) {
  return shape.beside_nic || !shape.neighbours.empty();
}

// Whether pods are on the node that it is to be near, or far from.
bool HasNeighbours(const Node& node, const RequestShape& shape);

// `free`, in growing sets: each has the one before it and the GPUs that suit the pod next best; the
// last is `free`.
std::vector<GpuMask> BySuitability(const Node& node, GpuMask free, const RequestShape& shape);

// GpuLinks::Choose, of the GPUs that suit the pod best. Requires: the links are known.
GpuMask ChooseSuiting(const Node& node, GpuMask free, const RequestShape& shape,
                      std::span<const GpuMask> tenants = {});

// How far from the best what the pod would get on the node is, by `far` and `near` alone:
// 0..kMostPenalty. Requires: the pod fits.
inline constexpr int kMostPenalty = 31;
int NeighbourPenalty(const Node& node, const RequestShape& shape);
// For people: "shares a PCIe root with pods that it is to be far from". Empty for 0.
std::string TextOfPenalty(int penalty);

// Crowding: how many pods of a workload are already where one more of it would go. A pod that
// spreads (RequestShape::spread) goes where that is least, so that the loss of one GPU, or of one
// node, takes few of them. It is no condition: where every place has one, they share. Pure
// functions.

// Pods of the workload that have a part of GPU `gpu`, or a place on it, told to end or not; 0 for a
// shape that does not spread over GPUs.
int CrowdOnGpu(const Node& node, int gpu, const RequestShape& shape);

// The same on as many of the GPUs as the pod needs, the least crowded: of these on the most crowded
// one. Requires: there are as many.
int CrowdOnGpus(const Node& node, GpuMask gpus, const RequestShape& shape);

// Pods of the workload that the next one would share with: on the GPU with the fewest of those that
// it could get a share of (of several GPUs on the most crowded of these); on the node, if it
// spreads over nodes, or if it is not Berth that chooses the GPU (places, MIG devices). 0 for a
// shape that does not spread, and for whole GPUs, which are never shared, over GPUs. Requires: the
// shape fits the node.
int CrowdOn(const Node& node, const RequestShape& shape);

// Behind: what puts a node behind others for a pod, whatever the scorers say of it
// (EvaluationTable::Totals). No condition: where all nodes are behind, the least so is taken. Pure
// functions.

// The first counts most.
struct Behind {
  bool gives_parts = false;  // of GPUs, and the pod does not say what it needs of one
  int crowd = 0;             // CrowdOn
  int penalty = 0;           // NeighbourPenalty

  // 0 = nothing does; higher is farther behind.
  [[nodiscard]] int rank() const;
  // For people, all that does; "" if nothing does.
  [[nodiscard]] std::string text() const;
};

// Whether it may be that a node is behind another for pods of that shape.
bool MayPutBehind(const RequestShape& shape);

// Requires: the shape fits the node.
Behind BehindOn(const Node& node, const RequestShape& shape);

}  // namespace berth
