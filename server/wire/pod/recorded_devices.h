// SPDX-License-Identifier: Apache-2.0
//
// Recorded devices: what the record of another scheduler says that a bound pod has, against what
// the pod asks for in the words of that scheduler.
//
// A record is an annotation, and anybody who may write a pod may write its annotations. So a record
// says which devices a pod has, and never how much: the amounts are those of the request. A record
// that says other amounts than the request, or another number of devices, counts for nothing, and
// the pod holds what it asks for, of GPUs that are unknown (cluster/node/given_grants.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

// So much of one GPU; 0 = not said.
struct GpuPart {
  int milli = 0;                // of its compute
  std::int64_t memory_mib = 0;  // of its memory
  int memory_milli = 0;         // of its memory, in thousandths; beside MiB it adds up
};
inline constexpr GpuPart kWholeGpu = {kMilliPerGpu, 0, kMilliPerGpu};

// One GPU of a record: by its index, or by its UUID.
struct RecordedGpu {
  int gpu = DeviceGrant::kUnknown;
  std::string uuid = {};
  GpuPart says = {};
};

// What one container, or the pod as a whole, asks for, and what the record has for it.
struct RecordedAsk {
  std::string where = {};  // "container main"; empty: the pod
  std::int64_t count = 0;  // GPUs that are asked for,
  GpuPart part = {};       // of each so much
  bool ends_first = false;
  std::vector<RecordedGpu> gpus = {};
};

// Puts the GPUs of the record into the placement, with the amounts that are asked for. Amounts are
// compared where both say them, to the whole percent and MiB in which records are written. Error:
// kInvalidArgument with the container, what was asked for, and what the record says; the pod is as
// it was then.
Status TakeRecordedGpus(const std::vector<RecordedAsk>& asks, ObservedPod& observed);

// The same for MIG devices: a pod gets one for each GPU that it asks for.
Status TakeRecordedMig(const PodParts& asked, std::vector<MigGrant> devices, ObservedPod& observed);

// What the pod as a whole asks for, in no agent's words: whole GPUs, or a share.
RecordedAsk PlainAsk(const PodParts& asked);

// What a pod holds that was bound although Berth refuses what it asks for.
GpuAsk RefusedAsk(const PodParts& asked);

}  // namespace berth::wire
