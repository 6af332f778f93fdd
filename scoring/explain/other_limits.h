// SPDX-License-Identifier: Apache-2.0
//
// What kube-scheduler counts on a node beside GPUs, CPU, memory and disk, and Berth knows without
// giving it: how many pods the node takes, devices of other plugins, huge pages. A node that does
// not say how many pods it takes (written by hand, or made of a machine type) has enough of all.
// Pure functions; some microseconds for a pod that asks for such resources.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// What the node has too little of for one more pod: the name of a resource, or "pods". "": nothing.
// Requires: the pod is not on the node.
std::string LackOf(const Node& node, const PodRequest& pod);

// What kube-scheduler alone judges of the pod, by name: "host ports", "volumes".
std::vector<std::string> NotJudgedOf(const PodRequest& pod);

// "2 lack rdma/hca, 1 takes no more pods". lacks: nodes by what they have too little of, as LackOf.
std::string TextOfLacks(const std::map<std::string, int>& lacks);

}  // namespace berth
