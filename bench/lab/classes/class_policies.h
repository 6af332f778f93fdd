// SPDX-License-Identifier: Apache-2.0
//
// ClassPolicy: how training, inference and batch learn which nodes to take.
//
//   classes         Berth with workload classes of these names
//   none            Berth without: every node is as good as its waste
//   affinity        Berth, with required node affinity as people write it: training on nodes with
//                   RDMA, inference on those without, batch on spot nodes
//   flavors         Kueue: the flavors of a ClusterQueue are tried in their order, and a workload
//                   gets the first in which it fits, borrowing all free quota; in it
//                   kube-scheduler's own choice, the node with the most left (LeastAllocated).
//                   Training: rdma, plain, spot; inference and batch: spot, plain, rdma.
//                   kubernetes-sigs/kueue, site/content/en/docs/concepts/cluster_queue.md at
//                   6a2cee3e, "Flavors and borrowing semantics". There quota decides, and a
//                   workload whose flavor has quota but no node with so many free GPUs waits; here
//                   it fits where a node has room, which is kinder
//   flavors-packed  the same with the fullest node (as NodeResourcesFit with MostAllocated)
//
// These are the rules on exact books, not the programs. Nobody is preempted.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/lab/classes/class_workload.h"
#include "bench/replay/policy.h"
#include "cluster/values/node_constraints.h"

namespace berth::replay {

struct ClassPolicy {
  ReplayPolicy engine;
  // Per class what is tried, one after the other, until a node is found.
  PerWorkClass<std::vector<NodeWishes>> tries;
};

std::vector<std::string_view> ClassPolicyNames();
// berth: the profile of the first three, and the classes of the first. Error: kInvalidArgument
// naming the policies there are; that of WishesPerWork.
Result<ClassPolicy> ClassPolicyNamed(std::string_view name, const ReplayPolicy& berth);

// Berth's default with the example of docs/workload-classes.md, which stands there as here.
ReplayPolicy BerthWithExample();
extern const char* const kClassExample;

// Of training, inference and batch. Error: kInvalidArgument for one that is not there.
Result<PerWorkClass<NodeWishes>> WishesPerWork(const WishesByClass& classes);

}  // namespace berth::replay
