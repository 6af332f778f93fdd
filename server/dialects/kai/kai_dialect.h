// SPDX-License-Identifier: Apache-2.0
//
// KAI's fractions of GPUs. KAI puts a pod of its own on each GPU that it shares, which asks for
// nvidia.com/gpu: 1 and says, as soon as it runs, which GPU that is:
//
//   run.ai/reserve_for_gpu_index: GPU-a
//
// The pods with a fraction (annotation gpu-fraction) ask the kubelet for nothing, so nothing of
// them is counted: their GPU is held by that one. Such a pod that KAI does not place gets no GPU,
// and is refused. (KAI-Scheduler at 0.13, pkg/binder/binding/resourcereservation;
// pkg/resourcereservation/patcher/pod_patcher.go.)
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeKai();

}  // namespace berth::dialects
