// SPDX-License-Identifier: Apache-2.0
//
// ClusterEvent: one change of the cluster, as ClusterState receives it. Events about one object
// arrive in order; events about different objects may arrive in any order (a pod or a claim before
// its node).
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cluster/node/mig_use.h"
#include "cluster/node/node.h"
#include "cluster/node/slice_gpus.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct NodeUpserted {
  NodeSpec spec;
};
struct NodeRemoved {
  std::string name;
};
// The pod runs (or will run) there. This is the truth even if it exceeds the node's capacity.
struct PodBound {
  PodRequest pod;
  Placement placement;
  // The devices come from an annotation of the pod. Anybody who may write the pod may write the
  // annotation, so it is believed only if it contradicts nothing that is known (device_disputes.h).
  bool devices_annotated = false;
  bool leaving = false;  // it was told to end, and holds its devices until it has
  // Berth chose devices for it once, and it does not say any more which they are.
  bool lacks_devices = false;
  // What it was given (given_grants.h); nullptr: nobody says it now. It takes precedence over the
  // placement, and what was said once holds as long as the pod is there.
  std::shared_ptr<const GivenDevices> given = nullptr;
  PodLife life = {};
};
struct PodGone {
  std::string uid;
};
// A list of all bound pods did not contain the pod, and the pod was not known to be bound when the
// list was requested. It may have been bound and deleted meanwhile, or bound after the list was
// made.
struct PodMissed {
  std::string uid;
};
// Everything that claims of that source hold on the node now. Replaces what the source reported
// before.
struct GpusClaimed {
  std::string node;
  std::vector<ClaimedGpu> gpus;
  // The kind of the claims; one watcher reports each kind. Empty: ResourceClaims.
  std::string source = {};
};
// The part of the node's GPUs that pods can get now by the claims that kube-scheduler makes for
// their extended resources; unknown = nothing. If the Node publishes its own MIG devices, those
// take precedence.
struct GpusOffered {
  std::string node;
  NodeMig mig;
};
// The whole GPUs of the node that ResourceSlices offer now. If the Node offers GPUs itself, those
// take precedence.
struct SliceGpusOffered {
  std::string node;
  SliceGpus gpus;
};
// From now on NodeSpec::refuses_gpu_pods and refused_asks of the node, whatever its Node says.
struct GpuPodsRefused {
  std::string node;
  bool refused = false;
  RefusedAsks asks = nullptr;
};
using ClusterEvent = std::variant<NodeUpserted, NodeRemoved, PodBound, PodGone, PodMissed,
                                  GpusClaimed, GpusOffered, SliceGpusOffered, GpuPodsRefused>;

}  // namespace berth
