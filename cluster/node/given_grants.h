// SPDX-License-Identifier: Apache-2.0
//
// Given grants: the GPUs or MIG devices of a node that a pod was given, by what somebody says who
// saw it (pod_record.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// The given devices as the node has them. Nothing where they do not count: the pod asks for neither
// whole GPUs nor MIG devices by name, the node does not know one of the devices, an agent of the
// node hands out GPUs by its own record (NodeSpec::share_agent) or claims say it
// (NodeSpec::by_claims, MigSpec::by_claims), the node has no agent that would have written it
// (Evidence::kAgent without NodeSpec::carries_out), or fewer devices are known than the pod asks
// for. Then `planned` fills up what is missing, if it has enough others: the status of a container
// that has ended does not name its devices any more. Of MIG devices the profile fills up what is
// missing then.
std::optional<PodDevices> DevicesGiven(const GivenDevices& given, const RequestShape& shape,
                                       const PodDevices& planned, const NodeSpec& node);

// What holds of a pod, of what was said before and is said now; either may be nullptr. Who is
// weaker is not heard, and of a container that has ended the devices stay known.
std::shared_ptr<const GivenDevices> Strongest(std::shared_ptr<const GivenDevices> before,
                                              std::shared_ptr<const GivenDevices> now);

// Named grants: devices by a record that names their GPUs by UUID, or that counts on some nodes
// alone. An index beside a UUID counts where the node says no UUID.

// Whether it depends on its node what one of the grants is.
bool HasNamedGrants(const Placement& placement);

// The placement with the indices of the node's GPUs in place of their UUIDs, where the node has
// them (nullptr: not known). What a record leaves open follows there: the compute (0) goes with the
// memory, the memory (0) with the compute. GPUs of a node that shows none of its GPUs by themselves
// are left out, and so are all devices by the record of an agent that the node does not show.
Placement WithIndices(Placement said, const NodeSpec* node);

struct GpuFree;
struct GpuSpec;

// Assumed grants: which GPUs a pod is assumed to have if it was bound past Berth and its devices
// are unknown. The assumption never makes room for other pods.

// Whole GPUs: the idle ones from the highest index down (Berth and the kubelet fill from the lowest
// up), then the freest. MIG devices without a name too, each counted as a GPU. A share, and
// each of several: the fullest GPU that still fits it, else the freest. Ties go to the highest
// index. Always as many GPUs as the pod asks for, if the node has them, so free amounts may become
// negative.
std::vector<DeviceGrant> AssumeGrants(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                      const GpuAsk& ask);

}  // namespace berth
