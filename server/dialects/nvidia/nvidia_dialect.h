// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's device plugin, GPU Feature Discovery and MIG manager publish: what the numbers of
// GPU resources stand for (node_gpus.h), the MIG devices by labels and allocatable (node_mig.h),
// and the resources nvidia.com/mig-PROFILE by which pods ask for them; what the toolkit's NRI
// plugin reads of a pod with a share (nri_annotations.h). It comes last: what agents with more
// knowledge have announced stands.
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeNvidia();

}  // namespace berth::dialects
