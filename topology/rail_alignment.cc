// SPDX-License-Identifier: Apache-2.0
#include "topology/rail_alignment.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth {
namespace {

constexpr int kMostExact = 16;

std::uint64_t Bit(int gpu) { return std::uint64_t{1} << gpu; }

// The set of k that most of the masks contain; 0 where none has k.
std::uint64_t BestOfAll(std::span<const std::uint64_t> free, int gpus, int k) {
  std::vector<int> holders(std::size_t{1} << gpus, 0);
  for (const std::uint64_t mask : free) ++holders[mask];
  // holders[set]: from "is exactly this" to "contains this".
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t set = 0; set < holders.size(); ++set) {
      if ((set & Bit(gpu)) == 0) holders[set] += holders[set | Bit(gpu)];
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

std::uint64_t OneByOne(std::span<const std::uint64_t> free, int gpus, int k) {
  std::vector<std::uint64_t> left;
  std::ranges::copy_if(free, std::back_inserter(left),
                       [k](std::uint64_t mask) { return std::popcount(mask) >= k; });
  std::uint64_t rails = 0;
  for (int taken = 0; taken < k && !left.empty(); ++taken) {
    int best = -1;
    std::ptrdiff_t most = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      if ((rails & Bit(gpu)) != 0) continue;
      const auto has =
          std::ranges::count_if(left, [gpu](std::uint64_t mask) { return (mask & Bit(gpu)) != 0; });
      if (has <= most) continue;
      best = gpu;
      most = has;
    }
    rails |= Bit(best);
    std::erase_if(left, [rails](std::uint64_t mask) { return (mask & rails) != rails; });
  }
  return rails;
}

// k GPUs of one node, as many of the rails as there are.
std::uint64_t OnNode(std::uint64_t free, std::uint64_t rails, int k) {
  if (std::popcount(free) < k) return 0;
  std::uint64_t given = free & rails;
  for (std::uint64_t rest = free & ~rails; std::popcount(given) < k; rest &= rest - 1) {
    given |= rest & (~rest + 1);
  }
  return given;
}

}  // namespace

RailChoice AlignRails(std::span<const std::uint64_t> free, int k) {
  BERTH_CHECK(k >= 1 && k <= 64);
  std::uint64_t any = 0;
  for (const std::uint64_t mask : free) any |= mask;
  const int gpus = 64 - std::countl_zero(any);
  RailChoice choice;
  if (gpus >= k) {
    choice.rails = gpus <= kMostExact ? BestOfAll(free, gpus, k) : OneByOne(free, gpus, k);
  }
  for (const std::uint64_t mask : free) {
    choice.nodes.push_back(OnNode(mask, choice.rails, k));
    choice.aligned += choice.rails != 0 && choice.nodes.back() == choice.rails ? 1U : 0U;
  }
  return choice;
}

}  // namespace berth
