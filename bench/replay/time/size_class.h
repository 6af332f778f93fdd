// SPDX-License-Identifier: Apache-2.0
//
// SizeClass: pods by what they ask for, as the reports group waiting times.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "bench/replay/trace.h"

namespace berth::replay {

// The last two are sums: pods of two or more GPUs, and all pods.
enum class SizeClass { kCpuOnly, kShare, kOne, kTwo, kFour, kEight, kMulti, kAll };
constexpr std::size_t kSizeClasses = 8;
constexpr std::array<std::string_view, kSizeClasses> kSizeClassNames = {
    "cpu-only", "share", "1", "2", "4", "8", "2+", "all"};

// 3 GPUs count as 2, 5 to 7 as 4, more than 8 as 8. Never one of the sums.
inline SizeClass SizeClassOf(const TraceTask& task) {
  if (task.gpus == 0) return SizeClass::kCpuOnly;
  if (task.gpus == 1) return task.gpu_milli < kMilliPerGpu ? SizeClass::kShare : SizeClass::kOne;
  if (task.gpus < 4) return SizeClass::kTwo;
  return task.gpus < 8 ? SizeClass::kFour : SizeClass::kEight;
}

}  // namespace berth::replay
