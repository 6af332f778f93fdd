// SPDX-License-Identifier: Apache-2.0
//
// What kube-scheduler counts on a node beside GPUs, CPU, memory and disk, and Berth knows without
// giving it: how many pods the node takes, devices of other plugins, huge pages. A node that does
// not say how many pods it takes (written by hand, or made of a machine type) has enough of all.
// Pure functions; some microseconds for a pod that asks for such resources.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"

namespace berth {

// What the node has too little of for one more pod: the name of a resource, or "pods". "": nothing.
// Requires: the pod is not on the node.
std::string LackOf(const Node& node, const PodRequest& pod);
// How many such pods it has enough for. Requires: as for LackOf.
int PodsByOthers(const Node& node, const PodRequest& pod);
// Whether both have as much of that; of the places for pods so many count.
bool HaveSameOthers(const Node& a, const Node& b, const PodRequest& pod, std::int64_t pods);

// "30 of 32 aws.amazon.com/neuroncore free": replicas of MIG devices, and devices of GPU vendors
// that are none of the GPUs.
std::vector<std::string> DevicesBesideOn(const Node& node);
// "2 aws.amazon.com/neuroncore": what the pod has of such devices. "": none.
std::string DevicesBesideOf(const PodRequest& pod);

// What kube-scheduler alone judges of the pod, by name: "host ports", "volumes".
std::vector<std::string> NotJudgedOf(const PodRequest& pod);

// Of a pod that Berth places nowhere: "asks for no GPU: kube-scheduler alone chooses its node", or
// "asks for example.com/gpu-10gb, which Berth does not place: ...".
std::string OfSchedulerAlone(const PodRequest& pod);

// The resource that was perhaps meant by one that no node has: at most two letters differ. "": none
// is that near.
std::string MeantBy(const std::string& resource, const Snapshot& snapshot);

// "2 lack rdma/hca, 1 takes no more pods". lacks: nodes by what they have too little of, as LackOf.
std::string TextOfLacks(const std::map<std::string, int>& lacks, const Snapshot& snapshot);

}  // namespace berth
