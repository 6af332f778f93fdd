// SPDX-License-Identifier: Apache-2.0
//
// What the commands share that compare policies on drawn workloads: the runs of every policy on the
// same seeds, on all cores.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/replay/parallel.h"

namespace berth::replay {

// The result of one policy, by seed. A row of a table derives from it.
template <class Run>
struct SeededRuns {
  std::vector<Run> runs;

  // value: a member of Run, or a function of one.
  template <class Value>
  [[nodiscard]] double Mean(const Value& value) const {
    double sum = 0;
    for (const Run& run : runs) sum += std::invoke(value, run);
    return sum / static_cast<double>(runs.size());
  }
};

// Sets each row's runs: simulate(row, s) -> Result<Run> for s = 0, ..., seeds - 1. Returns the
// first error in their order.
template <class Row, class Simulate>
Status RunSeeds(std::vector<Row>& rows, int seeds, const Simulate& simulate) {
  const auto count = static_cast<std::size_t>(seeds);
  for (Row& row : rows) row.runs.resize(count);
  std::vector<Status> status(rows.size() * count);
  ForEachInParallel(status.size(), AllCores(), [&](std::size_t i) {
    Row& row = rows[i / count];
    auto run = simulate(std::as_const(row), i % count);
    if (!run) status[i] = tl::unexpected(std::move(run).error());
    if (run) row.runs[i % count] = *std::move(run);
  });
  for (const Status& one : status) {
    if (!one) return one;
  }
  return {};
}

}  // namespace berth::replay
