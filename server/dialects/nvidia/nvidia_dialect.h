// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's device plugin, GPU Feature Discovery and MIG manager publish: what the numbers of
// GPU resources stand for (node_gpus.cc), the MIG devices by labels and allocatable (below), and
// the resources nvidia.com/mig-PROFILE by which pods ask for them; what the toolkit's NRI plugin
// reads of a pod with a share. It comes last: what agents with more knowledge have announced
// stands.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// The MIG devices of a node by its labels and resources.
//
// Allocatable nvidia.com/mig-PROFILE says how many there are on the node. The product is that of
// the label; the instances are laid out over as many GPUs as nvidia.com/gpu.count says beside the
// whole ones (else as few as hold them), the largest first, each onto the GPU with the most free
// units, where the driver would put it. A product that is not known, or that cannot be partitioned
// so: as many devices are on each of the GPUs, or each is on one of its own where their number is
// not known. An earlier dialect that has announced the MIG devices takes precedence over that.
//
// Beside that: strategy single (the product label ends in -MIG-PROFILE, and nvidia.com/gpu counts
// devices), devices with several users (.shared, or nvidia.com/mig-PROFILE.replicas above 1), and
// what is wrong (nvidia.com/mig.config.state; -MIG-INVALID; more devices allocatable than the
// labels nvidia.com/mig-PROFILE.count and nvidia.com/gpu.count know of). Labels as GPU Feature
// Discovery and mig-manager write them. What cannot be read is reported and passed over.
//
// Static devices of a node of AKS (label kubernetes.azure.com/agentpool) are fixed: the pool got
// its profile when it was created. Where NVIDIA's MIG manager runs (nvidia.com/mig.config.state),
// it cuts the GPUs.

// Lays out what is allocatable unless an earlier dialect has said what there is, and adds what only
// labels say.
void CompleteNodeMig(const wire::NodeFacts& facts, wire::MigDraft& draft);

std::unique_ptr<const wire::Dialect> MakeNvidia();

// What gives a share's GPU to its containers on nodes without an agent: the NRI plugin of NVIDIA's
// container toolkit (from 1.20 on). It reads annotations of the pod when a container is created,
// and adds the CDI devices that they name:
//
//   nvidia.cdi.k8s.io/container.NAME: k8s.device-plugin.nvidia.com/gpu=GPU-9f3c...
//   nvidia.cdi.k8s.io/pod: ...        every container without an annotation of its own
//
// Nothing on a node says by itself that the plugin runs. The operator of the cluster says it by the
// label berth.dev/nri, whose value is the CDI vendor of the GPUs: k8s.device-plugin.nvidia.com
// where NVIDIA's device plugin writes the CDI specification (GPU Operator), nvidia.com where the
// toolkit's packages do. The annotations are written with the binding and never read back.
inline constexpr std::string_view kNriLabel = "berth.dev/nri";
inline constexpr std::string_view kNriPrefix = "nvidia.cdi.k8s.io/";
// More containers with a share have one annotation for the whole pod.
inline constexpr std::size_t kMostNriContainers = 16;

// The CDI vendor that the label names; "" without the label, and where it is no vendor.
std::string_view NriVendor(const Labels& labels);

// What is wrong with the label; "" where nothing is, or it is not there.
std::string NriProblem(const Labels& labels);

// Adds the annotations for a share of GPUs that no agent hands out: one for each container that has
// a part of it. One for the pod, with all its GPUs, where there are more than kMostNriContainers,
// or the name of one is too long for a key (above 53 characters). None where a UUID is unknown or
// no name of a CDI device. Requires: the node has the devices (CheckDevices).
void WriteNri(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
              wire::Annotations& annotations);

}  // namespace berth::dialects
