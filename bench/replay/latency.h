// SPDX-License-Identifier: Apache-2.0
//
// Latencies: durations in microseconds and what is said of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace berth::replay {

struct LatencySummary {
  double mean = 0, p50 = 0, p99 = 0, max = 0;
};

// The q-quantile of sorted values: the smallest one that at least q of them do not exceed.
inline double Quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(q * static_cast<double>(sorted.size()) + 0.999999);
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

inline LatencySummary Summarize(std::vector<double> us) {
  if (us.empty()) return {};
  std::sort(us.begin(), us.end());
  const double sum = std::accumulate(us.begin(), us.end(), 0.0);
  return {sum / static_cast<double>(us.size()), Quantile(us, 0.5), Quantile(us, 0.99), us.back()};
}

}  // namespace berth::replay
