// SPDX-License-Identifier: Apache-2.0
//
// WaitingNews: tells why pods keep waiting, each in the sentence of `berth explain pod`, so that
// `kubectl describe pod` has the answer too: once for each pod and cause.
//
// A cause is what weighs most, not the numbers: these change with every pod that comes or goes.
// A cause is reported again after kAgain, when the API server has forgotten its Event.
//
// The pods are those of the schedulers that ask this Berth; others are placed by somebody else.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "base/clock.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/ports.h"
#include "server/why/live.h"

namespace berth {

// One thread at a time.
class WaitingNews {
 public:
  // An explanation takes milliseconds per thousand nodes: so many a look, which come a second
  // apart, cost some hundredths of a core.
  static constexpr int kPerLook = 2;
  static constexpr std::size_t kMostQueued = 20;
  static constexpr Duration kPatience = std::chrono::seconds(10);  // since the pod was created
  static constexpr Duration kRefill = std::chrono::seconds(5);
  static constexpr Duration kRecheck = std::chrono::minutes(5);  // whether the cause is another
  static constexpr Duration kAgain = std::chrono::minutes(55);   // an API server keeps Events for
                                                                 // an hour unless it says otherwise

  // References: they outlive the object.
  WaitingNews(const Live& live, DecisionSink& sink, const Clock& clock)
      : live_(live), sink_(sink), clock_(clock) {}

  // Call it about once a second where this process leads.
  void Look();

 private:
  struct Told {
    std::map<std::string, Instant> causes;  // when each was told
    std::string last;                       // the cause of the last look; empty: none was taken
    Instant next{};                         // look
  };

  void Refill(Instant now);
  void LookAt(const WaitingPod& pod, Instant now);

  const Live& live_;
  DecisionSink& sink_;
  const Clock& clock_;
  Instant refill_{};
  std::map<std::string, Told> told_;  // by UID
  std::deque<WaitingPod> queue_;
};

}  // namespace berth
