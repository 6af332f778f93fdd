// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a resource.k8s.io DeviceClass (v1), the part that tells which MIG devices an extended
// resource stands for.
#pragma once

#include <string>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/device_classes.h"

namespace berth::dialects {

// The profile is what the selectors of the class say, if each is an && of these alone, in any
// order:
//
//   device.driver == 'gpu.nvidia.com'
//   device.attributes['gpu.nvidia.com'].type == 'mig'
//   device.attributes['gpu.nvidia.com'].profile == '1g.5gb'
//
// It is one of whole GPUs if its selectors demand the driver and the type 'gpu' and are read as
// class_match.h says.
//
// problem: why a class with a name like nvidia.com/mig-1g.5gb has no profile, or not that one, and
// why one with the name of a vendor's GPUs is neither.
// Error: kInvalidArgument for what is not JSON, not a DeviceClass, or has no name.
Result<DeviceClass> DecodeDeviceClass(const PaddedText& text, std::string& problem);

}  // namespace berth::dialects
