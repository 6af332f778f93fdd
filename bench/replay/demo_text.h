// SPDX-License-Identifier: Apache-2.0
//
// What the demo prints of its runs: bars, and the sentence that sums them up. Same runs, same text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth::replay {

struct DemoRow {
  std::string policy;
  std::int64_t placed = 0, refused = 0;  // pods
  double idle_gpus = 0;                  // at the end
};

struct DemoRuns {
  std::int64_t gpus = 0;      // of the cluster
  std::vector<DemoRow> rows;  // the first is the one that the demo is about
};

// The fewest idle GPUs first. bar: what a bar is made of.
std::string DemoTable(const DemoRuns& runs, const std::string& bar);

// "Of 6,212 GPUs 241 stay idle; kube-scheduler's default leaves 352, FGD 360." Requires: a row.
std::string DemoSentence(const DemoRuns& runs);

// "6,212". Requires: number >= 0.
std::string WithCommas(std::int64_t number);

}  // namespace berth::replay
