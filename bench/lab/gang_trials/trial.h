// SPDX-License-Identifier: Apache-2.0
//
// One gang that comes to an idle cluster with a slow API server: whether it gets whole, and how
// long it is there in part. `berth serve` is a process of its own.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "bench/lab/gang_trials/small_scheduler.h"

namespace berth::gang_trials {

struct TrialOptions {
  std::string berth;  // the program
  int members = 64;   // of one GPU each
  Duration binding = std::chrono::milliseconds(10);
  int at_a_time = 128;            // Bindings that berth makes (server/service/serve.cc)
  Duration cycle{};               // of the scheduler, see SmallScheduler
  std::chrono::seconds hold{50};  // gangs.holdSeconds
  Duration arrival = std::chrono::seconds(1);     // of all members, one after the other
  Duration patience = std::chrono::seconds(150);  // after what the Bindings have to take
  std::uint64_t seed = 1;
};

struct TrialResult {
  int bound = 0;
  bool whole = false;
  Duration in_part{};      // from the first Binding to the last
  Duration until_whole{};  // from the last member's arrival
  Duration cpu{};          // of berth
  int double_grants = 0;
  SmallScheduler::Counts scheduler;
  std::string gangs;  // what /debug/gangs says in the end, where the gang is not whole
};

// What the Bindings have to take: the first goes alone, then so many at a time.
Duration TimeOfBindings(int members, Duration binding, int at_a_time);

TrialResult TryGang(const TrialOptions& options);

}  // namespace berth::gang_trials
