// SPDX-License-Identifier: Apache-2.0
//
// The largest node of the openb cluster: 128 cores, 8 GPUs. The published baselines scale by it.
#pragma once

namespace berth {

constexpr int kLargestNodeCpuMilli = 128'000;
constexpr int kLargestNodeGpuMilli = 8'000;

}  // namespace berth
