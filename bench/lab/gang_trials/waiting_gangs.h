// SPDX-License-Identifier: Apache-2.0
//
// What gangs cost those that ask: single pods beside large gangs that wait, members that differ,
// and members of a very large gang on a cluster that changes all the time.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"

namespace berth::gang_trials {

struct CostOptions {
  std::string berth;                         // the program
  int nodes = 0;                             // 0: as the measurement has them
  Duration time = std::chrono::seconds(20);  // of each turn
};

// 5,000 nodes, 4,000 of them full; single pods come and go, without and with six gangs of 1,100
// pods of 8 GPUs that wait, and whose members are asked about.
void MeasureBeside(const CostOptions& options);

// 4,000 idle nodes and a gang of 2,000 pods, each with another CPU request.
void MeasureDiffering(const CostOptions& options);

// 1,500 nodes, a gang of 8,000 pods that fits, and single pods that come and go.
void MeasureLarge(const CostOptions& options);

}  // namespace berth::gang_trials
