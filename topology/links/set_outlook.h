// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "topology/links/set_table.h"

namespace berth {

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
