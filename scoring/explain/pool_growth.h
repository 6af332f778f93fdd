// SPDX-License-Identifier: Apache-2.0
//
// GrowPools: what the next nodes of each pool would take of pods that wait.
//
// First the pods are placed as the cluster is, as a plan places them (what_if.h). Those that are
// left over are then tried with one, two, ... more nodes of one pool at a time: each a copy of a
// node of the pool, empty, beside all that there is. So pools are alternatives, and so are the
// numbers of one pool: they do not add up. Pools that have no node yet are tried after the others,
// by a template of their nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "scoring/explain/what_if.h"

namespace berth {

// NodePools: the nodes that are made alike and grow together, by the labels that clouds and
// autoscalers put on them. A pure function of a snapshot.
//
//   karpenter.sh/nodepool            Karpenter (karpenter.sh/docs/concepts/nodepools)
//   eks.amazonaws.com/nodegroup,
//   alpha.eksctl.io/nodegroup-name   EKS, eksctl (autoscaler at 0c14b06,
//                                    cluster-autoscaler/processors/nodegroupset/aws_nodegroups.go)
//   cloud.google.com/gke-nodepool    GKE (its documentation: node pools)
//   kubernetes.azure.com/agentpool,
//   agentpool                        AKS (autoscaler at 2ab5f36, .../azure_nodegroups.go;
//                                    learn.microsoft.com/azure/aks/use-labels)
//   worker.gardener.cloud/pool       Gardener
//
// The first that a node has counts. Nodes of one pool that differ in their instance type are apart:
// Karpenter's are. Cluster API and OKE name the pool in annotations, which are not looked at: where
// there is no label, nodes of one instance type, or of one model and number of GPUs, are a pool.
struct NodePool {
  std::string name = {};   // the value of the label; without one the instance type or the model
  std::string label = {};  // "" = there is none
  std::string instance_type = {};  // "" = not said
  std::string model = {};          // of its GPUs, those of `like`; "" = not known
  std::string like = {};  // the node that a new one is like: the first by name that is ready
  int nodes = 0;          // 0: it has none yet, and `like` is not in the cluster
  int gpus = 0;           // of `like`, partitioned ones too
  int replicas = 0;       // that share these
  // Why its cloud's autoscaler adds no nodes to it, whatever waits; "" = nothing is known against
  // it. A constant.
  std::string not_autoscaled = {};
};

// Those whose nodes have GPUs, sorted by label, name and instance type.
std::vector<NodePool> PoolsOf(const Snapshot& snapshot);

// A pool that has no node yet, of nodes like that one.
NodePool PoolAtZero(const NodeSpec& node);

inline constexpr int kMostGrowth = 100;  // nodes of one pool
inline constexpr std::size_t kMostToldKinds = 200;

struct Taken {
  std::int64_t pods = 0;
  std::int64_t gpu_milli = 0;  // that these ask for, thousandths; MIG devices are not counted
  Taken& operator+=(const PodRequest& pod);
  friend bool operator==(const Taken&, const Taken&) = default;
};

struct PoolGrowth {
  NodePool pool;
  std::vector<Taken> taken;  // [i]: by i + 1 nodes
};

struct Growth {
  EditedNodes nodes;  // by the edits of the ask; its snapshot has neither pods nor pools' nodes
  Taken asked, now;   // by all pods; by those that have a place without another node
  std::vector<PoolGrowth> pools;
  // Pods of the ask that have no place with so many nodes of every pool even by themselves, or with
  // their gang alone. Of the first kMostToldKinds kinds of pods that are left over.
  std::vector<std::size_t> nowhere;
  std::map<std::size_t, std::string> nowhere_whys;  // of the first of each kind; "" = no room
};

// most_nodes: 1..kMostGrowth of each pool. at_zero: a template for each pool that has no node yet.
// Error: as WhatIf, and kInvalidArgument where pools times nodes are more than kMostAddedNodes.
Result<Growth> GrowPools(const Engine& engine, const WhatIfAsk& ask, int most_nodes,
                         std::span<const NodeSpec> at_zero = {});

}  // namespace berth
