// SPDX-License-Identifier: Apache-2.0
//
// GpuMask: a set of the GPUs of one node, bit i for GPU i.
#pragma once

#include <bit>
#include <cstdint>

namespace berth {

using GpuMask = std::uint64_t;

constexpr GpuMask GpuBit(int gpu) { return GpuMask{1} << gpu; }

// GPUs 0 to gpus - 1, at most 64.
constexpr GpuMask AllGpus(int gpus) { return gpus == 64 ? ~GpuMask{0} : (GpuMask{1} << gpus) - 1; }

// The set of the lowest GPU alone; 0 of an empty set.
constexpr GpuMask LowestBit(GpuMask set) { return set & (~set + 1); }

// The set of the lowest `count`; all of a set that has no more.
constexpr GpuMask LowestBits(GpuMask set, int count) {
  GpuMask lowest = 0;
  for (; set != 0 && count > 0; set &= set - 1, --count) lowest |= LowestBit(set);
  return lowest;
}

// Calls visit(gpu) for each, the lowest first.
template <class Visit>
void ForEachGpu(GpuMask set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

}  // namespace berth
