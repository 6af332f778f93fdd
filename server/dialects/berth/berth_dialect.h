// SPDX-License-Identifier: Apache-2.0
//
// Berth's own annotations:
//
//   node  berth.dev/topology, berth.dev/mig (wire/node/topology_json.h, wire/node/mig_json.h)
//   node  berth.dev/gpu-uuids: GPU-a,GPU-b, by index, as nvidia-smi lists them
//   pod   berth.dev/gpu-model: A100|H100, berth.dev/link, numa, pattern, min-bandwidth-gbps,
//         mig-min-slices, mig-min-memory-gib (wire/pod/pod_mig.h), isolation, min-gpu-memory-gib
//         (wire/pod/pod_needs.h)
//   pod   berth.dev/devices, berth.dev/visible-devices, written with the binding
//         (wire/pod/devices_annotation.h)
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeBerth();

}  // namespace berth::dialects
