// SPDX-License-Identifier: Apache-2.0
//
// What all parts of the model share: the seed, the clock, what is planted, and what was found.
#pragma once

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/replay/time/sim_clock.h"

namespace berth::test {

// What one of the simulated parts does wrong, so that the checks can be checked.
enum class Planted {
  kNothing,
  kSizeTooSmall,       // a gang says one pod less than it needs
  kLosesJobs,          // every 25th job never runs
  kHidesDeletions,     // the watch does not show that pods are deleted
  kIgnoresUids,        // a Binding reaches the pod that has the name now
  kDeniesBindings,     // a Binding that was done is answered with "there is no such pod"
  kSaysBoundTooEarly,  // a Binding is answered with success and not done
  kSlowClock,          // Berth's clock runs at half the speed
  kOpenFence,          // who does not lead any more may still write
  kNeverWakes,         // nobody is woken, and refused binds wake nobody
  kForgetsBoundPods,   // a list at a restart does not show pods that are bound
  kForgetsGangs,       // a list at a restart shows bound pods without their gang
  kOffersOneNode,      // kube-scheduler offers one node at random
  kCountsInTexts,      // what Berth says of a pod ends in a number that grows
  kForgetsEndedPods,   // nobody knows of pods that have ended
  kBindsTwice,         // a Binding is carried out with other devices than it says
};

struct ModelReport {
  std::string violation;  // the first; "" = none
  std::uint64_t steps = 0;
  int whole = 0;      // gangs that ran
  int bindings = 0;   // of single pods too
  int restarts = 0;   // of Berth or kube-scheduler
  int handovers = 0;  // from one Berth to another
  int evictions = 0;
  int ended = 0;    // pods that ended with success
  int dropped = 0;  // nodes that another extender took out of Berth's answer
  int unbound = 0;  // pods that were not bound after filter, since Reserve or PreBind failed
  // What would come next, and when: equal where two runs did the same.
  int next_random = 0;
  Instant end;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  int Below(int n) { return static_cast<int>(random_.Below(static_cast<std::uint64_t>(n))); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  Random random_;
};

struct SimWorld {
  SimWorld(std::uint64_t seed, Planted what) : dice(seed), planted(what) {}

  // Notes what happens, where somebody wants to read it.
  template <typename... Parts>
  void Log(const Parts&... parts) {
    if (log == nullptr) return;
    std::ostringstream line;
    const auto now =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now().time_since_epoch());
    line << report.steps << " at " << now.count() << " ms:";
    ((line << ' ' << parts), ...);
    log->push_back(line.str());
  }
  void Violation(const std::string& what) {
    if (report.violation.empty()) {
      report.violation = what + " (step " + std::to_string(report.steps) + ")";
    }
  }

  Dice dice;
  const Planted planted;
  SimClock clock;
  ModelReport report;
  std::vector<std::string>* log = nullptr;
  bool disturbed = true;  // requests fail now and then
  // What runs now was begun in this step.
  std::uint64_t cause = 0;
};

}  // namespace berth::test
