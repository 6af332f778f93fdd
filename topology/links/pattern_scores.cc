// SPDX-License-Identifier: Apache-2.0
#include "topology/links/pattern_scores.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace berth {
namespace {

constexpr int kNoLink = std::numeric_limits<int>::max();  // nothing is slow yet

std::size_t SetsOf(const Wiring& wiring) { return std::size_t{1} << wiring.gpus; }

void ClearSmallSets(std::vector<int>& scores) {
  for (GpuMask set = 0; set < scores.size(); ++set) {
    if (std::popcount(set) < 2) scores[set] = 0;
  }
}

std::vector<int> WorstPairs(const Wiring& wiring) {
  std::vector<int> worst(SetsOf(wiring), kNoLink);
  for (GpuMask set = 1; set < worst.size(); ++set) {
    const int lowest = std::countr_zero(set);
    const GpuMask rest = set & (set - 1);
    worst[set] = worst[rest];
    ForEachGpu(rest,
               [&](int gpu) { worst[set] = std::min(worst[set], wiring.Between(lowest, gpu)); });
  }
  ClearSmallSets(worst);
  return worst;
}

// The lowest GPU goes with each of the others in turn; of an odd number each is left over in turn.
std::vector<int> Matchings(const Wiring& wiring) {
  std::vector<int> best(SetsOf(wiring), 0);
  best[0] = kNoLink;
  for (GpuMask set = 1; set < best.size(); ++set) {
    const int lowest = std::countr_zero(set);
    const GpuMask rest = set & (set - 1);
    if (std::popcount(set) % 2 == 1) {
      ForEachGpu(set, [&](int gpu) { best[set] = std::max(best[set], best[set ^ GpuBit(gpu)]); });
      continue;
    }
    ForEachGpu(rest, [&](int gpu) {
      best[set] =
          std::max(best[set], std::min(best[rest ^ GpuBit(gpu)], wiring.Between(lowest, gpu)));
    });
  }
  ClearSmallSets(best);
  return best;
}

// Column by column: ends[set][a][b] is the best mesh of the set whose last column is a above b.
std::vector<int> Meshes(const Wiring& wiring) {
  const auto gpus = static_cast<std::size_t>(wiring.gpus);
  std::vector<int> ends(SetsOf(wiring) * gpus * gpus, 0), best(SetsOf(wiring), 0);
  const auto end = [&](GpuMask set, int a, int b) -> int& {
    return ends[(set * gpus + static_cast<std::size_t>(a)) * gpus + static_cast<std::size_t>(b)];
  };
  const auto with_column = [&](GpuMask set, int a, int b) {
    const GpuMask rest = set ^ GpuBit(a) ^ GpuBit(b);
    const int column = wiring.Between(a, b);
    if (rest == 0) return column;
    int most = 0;
    ForEachGpu(rest, [&](int c) {
      ForEachGpu(rest ^ GpuBit(c), [&](int d) {
        const int rows = std::min(wiring.Between(a, c), wiring.Between(b, d));
        most = std::max(most, std::min({end(rest, c, d), rows, column}));
      });
    });
    return most;
  };
  for (GpuMask set = 1; set < best.size(); ++set) {
    if (std::popcount(set) % 2 == 1) continue;
    ForEachGpu(set, [&](int a) {
      ForEachGpu(set ^ GpuBit(a), [&](int b) {
        end(set, a, b) = with_column(set, a, b);
        best[set] = std::max(best[set], end(set, a, b));
      });
    });
  }
  return best;
}

}  // namespace

std::vector<int> PatternScores(const Wiring& wiring, LinkPattern pattern) {
  if (wiring.gpus > kMaxPatternGpus) return {};
  switch (pattern) {
    case LinkPattern::kAllToAll:
      return WorstPairs(wiring);
    case LinkPattern::kPairs:
      return Matchings(wiring);
    case LinkPattern::kGrid:
      return wiring.gpus > kMaxGridGpus ? std::vector<int>() : Meshes(wiring);
    default:
      return {};
  }
}

}  // namespace berth
