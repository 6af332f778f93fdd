// SPDX-License-Identifier: Apache-2.0
//
// RepartitionReport: the nodes of a cluster that would take waiting pods if they were cut
// otherwise, each with the best of the standard layouts (repartition_advice.h). For people: Berth
// cuts nothing.
//
// Looked at are nodes all of whose GPUs are cut (static, and not fixed), that have no pod with
// GPUs, no devices with several users, and no trouble; and waiting pods that ask for one device by
// the name of its profile. A pod counts for a node that it may go to (admission.h) and whose free
// CPU and memory suffice for so many like it; for the first of these nodes, and no other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/pod_request.h"
#include "cluster/snapshot.h"
#include "scoring/mig/repartition_advice.h"

namespace berth {

struct NodeAdvice {
  std::string node;
  std::string product;  // of the catalogue
  int gpus = 0;         // to be cut
  RepartitionAdvice advice;
};

// Pods that ask in more different ways than this are left out, the last of them first.
inline constexpr std::size_t kMostWaitingKinds = 256;

// By the names of the nodes. Pure; some 10 microseconds per idle node.
std::vector<NodeAdvice> AdviseNodes(const Snapshot& snapshot,
                                    std::span<const std::shared_ptr<const PodRequest>> waiting);

// "node n1 to all-balanced: 12 waiting pods fit, 0 with what it has".
std::string TextOf(const NodeAdvice& advice);

}  // namespace berth
