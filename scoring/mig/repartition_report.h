// SPDX-License-Identifier: Apache-2.0
//
// RepartitionReport: the nodes that would take waiting pods after a repartitioning, each with the
// best of the standard layouts (repartition_advice.h). For people: Berth repartitions nothing.
//
// Only nodes whose GPUs are all partitioned are considered (static, and not fixed), without GPU
// pods, devices with several users, or trouble; and only waiting pods that ask for one device by
// the name of its profile. A pod counts for the first node, and no other, that admits it
// (admission.h) and whose free CPU, memory and disk suffice for so many like it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/mig/repartition_advice.h"

namespace berth {

struct NodeAdvice {
  std::string node;
  std::string product;  // of the catalogue
  int gpus = 0;         // to be repartitioned
  RepartitionAdvice advice;
};

// Waiting pods beyond so many different shapes are left out, the last ones first.
inline constexpr std::size_t kMostWaitingKinds = 256;

// By the names of the nodes. Pure; some 10 microseconds per idle node.
std::vector<NodeAdvice> AdviseNodes(const Snapshot& snapshot,
                                    std::span<const std::shared_ptr<const PodRequest>> waiting);

// "node n1 to all-balanced: 12 waiting pods fit, 0 with its present partitioning".
std::string TextOf(const NodeAdvice& advice);

}  // namespace berth
