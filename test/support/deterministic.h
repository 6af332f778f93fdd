// SPDX-License-Identifier: Apache-2.0
//
// Whether a simulation is deterministic: ten runs beside each other with one seed end alike.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "bench/replay/parallel.h"

namespace berth::test {

struct RunEnd {
  std::uint64_t trace = 0;
  double served = 0;
  friend auto operator<=>(const RunEnd&, const RunEnd&) = default;
};

// The ends of ten runs with one seed: one, if all is well.
inline std::set<RunEnd> EndsOf(const std::function<RunEnd(std::uint64_t)>& run,
                               std::uint64_t seed) {
  std::vector<RunEnd> ends(10);
  replay::ForEachInParallel(ends.size(), 4, [&](std::size_t i) { ends[i] = run(seed); });
  return {ends.begin(), ends.end()};
}

inline void ExpectDeterministic(const std::function<RunEnd(std::uint64_t)>& run) {
  const std::set<RunEnd> first = EndsOf(run, 1), second = EndsOf(run, 2);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(second.size(), 1U);
  EXPECT_NE(first.begin()->trace, second.begin()->trace) << "the trace has to tell runs apart";
}

}  // namespace berth::test
