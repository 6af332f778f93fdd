// SPDX-License-Identifier: Apache-2.0
//
// SoakRun: two Berths, an API server and a kube-scheduler, one random step after the other, and
// tenants who write whatever a pod can say (hostile_pod.h).
//
// Whatever takes time is a step of its own: a list is asked for, answered, brought and ended in
// different steps, a watch lags behind, and while a Binding is on the wire or its answer is, other
// steps are taken, other binds among them. After every step the books of the process that leads are
// compared with what the API server has. Now and then there is calm: faults cease, what is in doubt
// becomes overdue, a second passes. Then nothing may be reserved, and no pod may wait beside a
// place that fits it.
//
// Hostile pods may make the books cautious and honest pods wait; they leave before a calm is
// judged. While they are there: no GPU is promised beyond what it has, everybody is held who is
// there, and nobody holds more or less than it asks for.
//
// The same seed takes the same steps, which trace() shows.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/replay/time/sim_clock.h"
#include "test/soak/soak_process.h"

namespace berth::test {

class SoakRun {
 public:
  // crowd: so many pods wait all the time, since no node could ever take them.
  explicit SoakRun(std::uint64_t seed, std::size_t crowd = 0);

  // One step and what happens while it is under way; false: something that must never happen did.
  bool Step();
  // Faults end, everything is deleted: then nothing may be left. False as above.
  bool End();

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // What happened last, a line each.
  [[nodiscard]] std::string History() const;
  // All events of the API server, all answers and all Bindings so far, as one number.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }
  // What would come next, and when: equal where two runs did the same.
  [[nodiscard]] std::uint64_t NextRandom() { return random_.Next(); }
  [[nodiscard]] Instant now() const { return clock_.Now(); }
  // Whether hostile records claim more or less than their pods ask for.
  [[nodiscard]] bool lies() const { return lies_; }
  // What happened how often, to see that a run was not idle.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  static constexpr int kNodes = 6;
  static constexpr std::size_t kMostPods = 30;
  static constexpr std::size_t kMostHostile = 10;
  static constexpr std::size_t kMostAsked = 20;  // of the crowd, in a calm
  static constexpr int kMostNested = 3;

  [[nodiscard]] SoakProcess& leader() { return *processes_[leader_]; }
  bool Chance(int percent) { return random_.Below(100) < static_cast<std::uint64_t>(percent); }
  // One of those for which `wanted` holds; nullptr: there is none.
  const SoakPod* Some(const std::function<bool(const SoakPod&)>& wanted);

  bool IsDisputed(const SoakPod& pod);
  void TakeStep();
  void OnTheWire();
  Fault SomeFault();

  void Create();
  void Schedule();
  void ScheduleThis(std::string name);
  void Leave();
  void Follow();
  void CutSomething();
  void PassTime();
  void ChangeNode();
  void Harass();
  void Forge();
  void MendForged();
  void Look();
  void ChangeLeader();
  void Calm();

  void Note(const std::string& what);
  void CatchUp();
  void Fail(const std::string& what);
  void CheckNothingForgotten();
  void CheckBesideHostile();
  void CheckCalm();
  void CheckWaitingPods();
  void CheckNobodyWaits();
  void SendHostileAway();
  void Trace(std::string_view what);

  Random random_;
  SimClock clock_;
  SoakApi api_;
  std::array<std::unique_ptr<SoakProcess>, 2> processes_;
  std::size_t leader_ = 0;
  bool calm_ = false;
  int nested_ = 0;
  const std::size_t crowd_;
  bool lies_ = false;  // records of other ecosystems claim more or less than their pods ask for
  std::uint64_t trace_ = 14'695'981'039'346'656'037U;  // FNV-1a
  std::size_t hostile_ = 0;
  std::uint64_t next_pod_ = 0;
  std::uint64_t steps_ = 0;
  std::set<std::string> busy_;  // pods whose bind is under way, or that are being asked about
  std::array<std::set<std::string>, 2> shown_;  // pods that a process has to hold: shown or bound
  std::map<std::string, std::uint64_t> counts_;
  std::deque<std::string> history_;
  std::string failure_;
};

}  // namespace berth::test
