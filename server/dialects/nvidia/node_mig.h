// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

// Lays out what is allocatable unless an earlier dialect has said what there is, and adds what only
// labels say.
void CompleteNodeMig(const wire::NodeFacts& facts, wire::MigDraft& draft);

}  // namespace berth::dialects
