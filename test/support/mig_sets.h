// SPDX-License-Identifier: Apache-2.0
//
// The rules of what goes together on a GPU, told once more: units are counted one by one in a list,
// and nothing of MigProduct but its rows is asked.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "topology/mig/mig_product.h"

namespace berth::test {

using RowAndStart = std::pair<int, int>;

inline std::vector<RowAndStart> PlacementsByHand(const MigProduct& product) {
  std::vector<RowAndStart> placements;
  for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
    for (int start = 0; start < kMaxMigUnits; ++start) {
      const unsigned starts = product.row(row).starts;
      if ((starts & (1U << start)) != 0) placements.emplace_back(row, start);
    }
  }
  return placements;
}

inline bool GoTogetherByHand(const MigProduct& product, const std::vector<RowAndStart>& set) {
  std::map<int, int> users, instances;
  int ofa = 0;
  int engines[4] = {};
  for (const auto& [index, start] : set) {
    const MigRow& row = product.row(index);
    for (int unit = start; unit < start + row.memory_units; ++unit) {
      if (unit >= product.memory_units() || ++users[unit] > 1) return false;
    }
    if (++instances[index] > row.max_instances) return false;
    if (row.once_per_gpu && ++ofa > 1) return false;
    engines[0] += row.engines.decoders;
    engines[1] += row.engines.encoders;
    engines[2] += row.engines.jpeg;
    engines[3] += row.engines.copy;
  }
  if (!product.engine_limited()) return true;
  const MigEngines& all = product.engines();
  return engines[0] <= all.decoders && engines[1] <= all.encoders && engines[2] <= all.jpeg &&
         engines[3] <= all.copy;
}

}  // namespace berth::test
