// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <string>
#include <vector>

#include "cluster/state/snapshot.h"

namespace berth {

struct NodePool {
  std::string name = {};   // the value of the label; without one the instance type or the model
  std::string label = {};  // "" = there is none
  std::string instance_type = {};  // "" = not said
  std::string model = {};          // of its GPUs, those of `like`; "" = not known
  std::string like = {};  // the node that a new one is like: the first by name that is ready
  int nodes = 0;          // 0: it has none yet, and `like` is not in the cluster
  int gpus = 0;           // of `like`: whole ones or places, partitioned ones too
  // Why its cloud's autoscaler adds no nodes to it, whatever waits; "" = nothing is known against
  // it. A constant.
  std::string not_autoscaled = {};
};

// Those whose nodes have GPUs, sorted by label, name and instance type.
std::vector<NodePool> PoolsOf(const Snapshot& snapshot);

// A pool that has no node yet, of nodes like that one.
NodePool PoolAtZero(const NodeSpec& node);

}  // namespace berth
