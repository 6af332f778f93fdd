// SPDX-License-Identifier: Apache-2.0
//
// SetTable: what every set of a wiring's GPUs is worth, and the best set inside every free set.
//
//   quality(S) = 0.6 ring + 0.25 bisection + 0.15 aggregate, each relative to the best set of that
//                size in the whole machine; 1 for a single GPU
//   ring(S)      bandwidth of the worst link of the best ring through S (of two: their link)
//   bisection(S) smallest total bandwidth between two halves of S
//   aggregate(S) total bandwidth between the GPUs of S
//   value(F)     worth of a free set for the pods to come: sum over sizes k of share(k) x (best
//                partition of F into k-sets, mean quality of its sets, + 0.1 x mean quality of all
//                k-sets of F), in millionths. Between equal values the one that keeps NUMA groups
//                whole is higher: + the sum of the squares of the GPUs of F in each group
//
// Choosing k of F: the highest quality, then the smallest NUMA span, then the highest value of what
// stays free, then the lowest mask. One GPU: the worst-connected one, which is the one that leaves
// the rest worth most (a GPU off the fabric, or with the fewest links), then the one with the least
// bandwidth to the rest.
//
// Exact over all 2^n sets, so at most kMaxTableGpus GPUs; SearchSet (gpu_links.h) is for more. To
// build it takes O(3^n) steps: well under 1 ms for 8 GPUs, and a fraction of a second and 2 MiB for
// 16, so a table is built when it is first needed. Immutable; any number of threads may read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "topology/links/wiring.h"

namespace berth {

inline constexpr int kMaxTableGpus = 16;
inline constexpr int kPerfect = 1000;  // quality in thousandths

// How often pods ask for each number of GPUs: share[k] of the requests ask for k, any scale. The
// measurements in bench/RESULTS.md were made with the default.
struct SizeMix {
  std::array<double, kMaxTableGpus + 1> share = {0, 40, 25, 10, 18, 0, 0, 0, 7};
};

class SetTable {
 public:
  // Requires: wiring.gpus <= kMaxTableGpus.
  explicit SetTable(Wiring wiring, const SizeMix& mix = {});

  [[nodiscard]] const Wiring& wiring() const { return wiring_; }

  // Of any set of the wiring's GPUs. MB/s; 0 for a single GPU and for none.
  [[nodiscard]] int ring(GpuMask set) const { return ring_[set]; }
  [[nodiscard]] int bisection(GpuMask set) const { return bisection_[set]; }
  [[nodiscard]] int aggregate(GpuMask set) const { return aggregate_[set]; }
  [[nodiscard]] int quality(GpuMask set) const { return rank_[set] / kRanksPerQuality; }  // 0..1000
  [[nodiscard]] int span(GpuMask set) const {  // NUMA groups
    return set == 0 ? 0 : kRanksPerQuality - rank_[set] % kRanksPerQuality;
  }
  [[nodiscard]] int value(GpuMask free) const { return value_[free]; }  // millionths
  [[nodiscard]] int best_ring(int size) const {                         // of any set of that size
    return best_ring_[static_cast<std::size_t>(size)];
  }

  // `size` GPUs of `free` that include `required`; 0 where there are none. Requires: both are sets
  // of this wiring's GPUs.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, GpuMask required = 0) const;

 private:
  // A rank orders sets by quality and then by span, smaller spans first.
  static constexpr int kRanksPerQuality = 32;

  void BuildAggregates();
  void BuildRings();
  void BuildBisections();
  void BuildRanks();
  void BuildValues(const SizeMix& mix);
  void BuildChoices();
  [[nodiscard]] int Compactness(GpuMask set) const;
  [[nodiscard]] GpuMask Search(GpuMask free, int size, GpuMask required) const;
  [[nodiscard]] GpuMask WorstConnected(GpuMask free) const;

  Wiring wiring_;
  std::size_t sets_;
  std::vector<int> ring_, bisection_, aggregate_, value_;
  std::vector<std::uint16_t> rank_;
  std::array<int, kMaxTableGpus + 1> best_ring_{};
  std::vector<std::uint8_t> choice_;  // [size][free] up to 8 GPUs, where all choices are kept
};

// SetOutlook: the best set inside a free set when the holders of the other GPUs are known.
//
// GPUs are released in the sets in which they were given, so what the next pod will find depends on
// the tenants as much as on the free GPUs. Maximises
//
//   utility(S) + 0.7 next(F - S, tenants and S)
//
//   utility(S)  quality(S) of set_table.h, less 0.03 (1 - smallest span of the size / span(S))
//   best(F, k)  the highest utility of k GPUs of F
//   next(F, T)  sum over sizes k of share(k) x the mean of best(F', k), where F' is F once so many
//               tenants have left, in random order, that it has k GPUs
//
// in steps of 1e-4; where that is equal: the smallest NUMA span, the highest SetTable::value of the
// rest, the lowest mask. The weights were chosen on job streams other than those of
// bench/RESULTS.md.
//
// For at most kMaxOutlookGpus GPUs: every subset of the tenants may leave before a large pod fits.
// Immutable; any number of threads may read.

inline constexpr int kMaxOutlookGpus = 8;

class SetOutlook {
 public:
  // Requires: at most kMaxOutlookGpus GPUs; the table outlives the outlook.
  SetOutlook(const SetTable& table, const SizeMix& mix);

  // As SetTable::Choose. Tenants: the sets that are held now; GPUs that are neither free nor held
  // do not come back. Requires: they are disjoint from each other and from `free`.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, GpuMask required,
                               std::span<const GpuMask> tenants) const;

 private:
  class Departures;

  [[nodiscard]] int best(int size, GpuMask free) const {
    return best_[static_cast<std::size_t>(size)][free];
  }
  [[nodiscard]] double Next(GpuMask free, std::span<const GpuMask> tenants) const;

  const SetTable& table_;
  std::vector<std::pair<int, double>> shares_;              // of the sizes whose sets differ
  std::vector<int> utility_;                                // [set], 1e-4
  std::array<std::vector<int>, kMaxOutlookGpus + 1> best_;  // [size][free], of shares_
};

}  // namespace berth
