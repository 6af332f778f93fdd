// SPDX-License-Identifier: Apache-2.0
//
// SimCalls: the binds that kube-scheduler has asked for, and whether it still waits for the answer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "test/model/sim_world.h"

namespace berth::test {

constexpr Duration kHttpTimeout = std::chrono::seconds(60);

struct SimCall {
  std::string uid, gang, node;
  int berth = 0;  // which Berth was asked
  Instant until{};
  bool waits = true;
  std::uint64_t gone = 0;  // the step in which it waited no more
  int answers = 0;
};

class SimCalls {
 public:
  explicit SimCalls(SimWorld& world) : world_(world) {}

  int Add(SimCall call) {
    call.until = world_.clock.Now() + kHttpTimeout;
    calls_.emplace(++number_, std::move(call));
    return number_;
  }
  [[nodiscard]] SimCall& at(int number) { return calls_.at(number); }
  void End(SimCall& call) {
    if (std::exchange(call.waits, false)) call.gone = world_.report.steps;
  }

  // Ends those that this Berth would have answered (0: all), and returns their pods.
  std::set<std::string> EndAll(int berth = 0) {
    std::set<std::string> uids;
    for (auto& [number, call] : calls_) {
      if (!call.waits || (berth != 0 && call.berth != berth)) continue;
      End(call);
      uids.insert(call.uid);
    }
    return uids;
  }

  // A bind of that pod to that node was asked for.
  [[nodiscard]] bool Asked(const std::string& uid, const std::string& node) const {
    for (const auto& [number, call] : calls_) {
      if (call.uid == uid && call.node == node) return true;
    }
    return false;
  }
  // The pods of the gang whose bind waited for its answer when that step began.
  [[nodiscard]] std::set<std::string> WaitedIn(std::uint64_t step, const std::string& gang) const {
    std::set<std::string> uids;
    for (const auto& [number, call] : calls_) {
      if (call.gang == gang && (call.waits || call.gone >= step)) uids.insert(call.uid);
    }
    return uids;
  }

  // Looks for binds whose client has waited too long, and forgets old ones.
  void GiveUpLate() {
    for (const auto& [number, call] : calls_) {
      if (!call.waits || call.until > world_.clock.Now()) continue;
      world_.Violation("answered: a bind of " + call.uid + " was not answered in time");
    }
    std::erase_if(calls_, [this](const auto& call) {
      return !call.second.waits && call.second.until + kHttpTimeout < world_.clock.Now();
    });
  }
  void CheckNoneWaits() {
    for (const auto& [number, call] : calls_) {
      if (call.waits) world_.Violation("answered: a bind of " + call.uid + " has no answer");
    }
  }

 private:
  SimWorld& world_;
  std::map<int, SimCall> calls_;
  int number_ = 0;
};

}  // namespace berth::test
