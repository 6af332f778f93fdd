// SPDX-License-Identifier: Apache-2.0
#include "topology/links/gpu_links.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace berth {
namespace {

// Bandwidth between one GPU and a set.
std::int64_t BandwidthTo(const Wiring& wiring, int gpu, GpuMask set) {
  std::int64_t total = 0;
  ForEachGpu(set & ~GpuBit(gpu), [&](int other) { total += wiring.Between(gpu, other); });
  return total;
}

// A growing set, with every GPU's bandwidth to it.
struct Candidate {
  GpuMask set = 0;
  std::int64_t aggregate = 0;
  std::array<std::int64_t, kMaxGpus> to_set{};

  void Add(const Wiring& wiring, int gpu) {
    aggregate += to_set[static_cast<std::size_t>(gpu)];
    set |= GpuBit(gpu);
    for (int i = 0; i < wiring.gpus; ++i) {
      to_set[static_cast<std::size_t>(i)] += wiring.Between(gpu, i);
    }
  }
  void Remove(const Wiring& wiring, int gpu) {
    set &= ~GpuBit(gpu);
    aggregate -= to_set[static_cast<std::size_t>(gpu)];
    for (int i = 0; i < wiring.gpus; ++i) {
      to_set[static_cast<std::size_t>(i)] -= wiring.Between(gpu, i);
    }
  }
};

Candidate Grow(const Wiring& wiring, GpuMask free, int size, GpuMask seed) {
  Candidate candidate;
  ForEachGpu(seed, [&](int gpu) { candidate.Add(wiring, gpu); });
  while (std::popcount(candidate.set) < size) {
    int best = -1;
    std::pair<std::int64_t, int> best_key;
    ForEachGpu(free & ~candidate.set, [&](int gpu) {
      const std::pair key(candidate.to_set[static_cast<std::size_t>(gpu)],
                          -wiring.Span(candidate.set | GpuBit(gpu)));
      if (best >= 0 && key <= best_key) return;
      best = gpu;
      best_key = key;
    });
    candidate.Add(wiring, best);
  }
  return candidate;
}

// Swaps the pair that gains most; false where none gains.
bool Improve(const Wiring& wiring, GpuMask free, GpuMask required, Candidate& candidate) {
  std::int64_t best_gain = 0;
  int out = -1, in = -1;
  ForEachGpu(candidate.set & ~required, [&](int inside) {
    ForEachGpu(free & ~candidate.set, [&](int outside) {
      const std::int64_t gain = candidate.to_set[static_cast<std::size_t>(outside)] -
                                wiring.Between(inside, outside) -
                                candidate.to_set[static_cast<std::size_t>(inside)];
      if (gain <= best_gain) return;
      best_gain = gain;
      out = inside;
      in = outside;
    });
  });
  if (out < 0) return false;
  candidate.Remove(wiring, out);
  candidate.Add(wiring, in);
  return true;
}

GpuMask WorstConnected(const Wiring& wiring, GpuMask free) {
  GpuMask worst = 0;
  std::int64_t least = 0;
  ForEachGpu(free, [&](int gpu) {
    const std::int64_t total = BandwidthTo(wiring, gpu, free);
    if (worst != 0 && total >= least) return;
    worst = GpuBit(gpu);
    least = total;
  });
  return worst;
}

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

std::int64_t AggregateOf(const Wiring& wiring, GpuMask set) {
  std::int64_t twice = 0;
  ForEachGpu(set, [&](int gpu) { twice += BandwidthTo(wiring, gpu, set); });
  return twice / 2;
}

GpuMask SearchSet(const Wiring& wiring, GpuMask free, int size, GpuMask required) {
  if (size < 1 || size > std::popcount(free) || std::popcount(required) > size) return 0;
  if ((required & ~free) != 0) return 0;
  if (size == 1) return required != 0 ? required : WorstConnected(wiring, free);
  Candidate best;
  const GpuMask seeds = required != 0 ? required & (~required + 1) : free;
  ForEachGpu(seeds, [&](int seed) {
    const Candidate grown = Grow(wiring, free, size, required | GpuBit(seed));
    const bool better =
        best.set == 0 || grown.aggregate > best.aggregate ||
        (grown.aggregate == best.aggregate && wiring.Span(grown.set) < wiring.Span(best.set));
    if (better) best = grown;
  });
  for (int swaps = 0; swaps < 2 * size; ++swaps) {
    if (!Improve(wiring, free, required, best)) break;
  }
  return best.set;
}

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
