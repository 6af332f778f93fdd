// SPDX-License-Identifier: Apache-2.0
#include "topology/links/rail_alignment.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth {
namespace {

constexpr int kMostExact = 16;

// The set of k that most of the masks contain; 0 where none has k.
GpuMask BestOfAll(std::span<const GpuMask> free, int gpus, int k) {
  std::vector<int> holders(std::size_t{1} << gpus, 0);
  for (const GpuMask mask : free) ++holders[mask];
  // holders[set]: from "is exactly this" to "contains this".
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t set = 0; set < holders.size(); ++set) {
      if ((set & GpuBit(gpu)) == 0) holders[set] += holders[set | GpuBit(gpu)];
    }
  }
  std::size_t best = 0;
  int most = 0;
  for (std::size_t set = 0; set < holders.size(); ++set) {
    if (std::popcount(set) != k || holders[set] <= most) continue;
    best = set;
    most = holders[set];
  }
  return best;
}

GpuMask OneByOne(std::span<const GpuMask> free, int gpus, int k) {
  std::vector<GpuMask> left;
  std::ranges::copy_if(free, std::back_inserter(left),
                       [k](GpuMask mask) { return std::popcount(mask) >= k; });
  GpuMask rails = 0;
  for (int taken = 0; taken < k && !left.empty(); ++taken) {
    int best = -1;
    std::ptrdiff_t most = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      if ((rails & GpuBit(gpu)) != 0) continue;
      const auto has =
          std::ranges::count_if(left, [gpu](GpuMask mask) { return (mask & GpuBit(gpu)) != 0; });
      if (has <= most) continue;
      best = gpu;
      most = has;
    }
    rails |= GpuBit(best);
    std::erase_if(left, [rails](GpuMask mask) { return (mask & rails) != rails; });
  }
  return rails;
}

// k GPUs of one node, as many of the rails as there are.
GpuMask OnNode(GpuMask free, GpuMask rails, int k) {
  if (std::popcount(free) < k) return 0;
  GpuMask given = free & rails;
  for (GpuMask rest = free & ~rails; std::popcount(given) < k; rest &= rest - 1) {
    given |= rest & (~rest + 1);
  }
  return given;
}

}  // namespace

RailChoice AlignRails(std::span<const GpuMask> free, int k) {
  BERTH_CHECK(k >= 1 && k <= 64);
  GpuMask any = 0;
  for (const GpuMask mask : free) any |= mask;
  const int gpus = 64 - std::countl_zero(any);
  RailChoice choice;
  if (gpus >= k) {
    choice.rails = gpus <= kMostExact ? BestOfAll(free, gpus, k) : OneByOne(free, gpus, k);
  }
  for (const GpuMask mask : free) {
    choice.nodes.push_back(OnNode(mask, choice.rails, k));
    choice.aligned += choice.rails != 0 && choice.nodes.back() == choice.rails ? 1U : 0U;
  }
  return choice;
}

}  // namespace berth
