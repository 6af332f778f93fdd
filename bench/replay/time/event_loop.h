// SPDX-License-Identifier: Apache-2.0
//
// EventLoop: a stream of pods on a virtual clock, the same for every simulation.
//
// A pod joins the SchedulingQueue when it arrives and is offered when its turn has come. It takes
// its devices at once (decisions and binds take no virtual time, nobody is evicted) and returns
// them when it has run. At one moment the order is: pods that end, events of the simulation's own,
// pods that arrive, the queue's ticks, attempts until no pod is active.
//
//   t = 0  pod A comes, is placed (runs 60 s); pod B comes, does not fit: unschedulable
//   t = 60 A ends: B's backoff of 1 s is long over, so it is active, and is placed
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/replay/time/event_trace.h"
#include "bench/replay/time/room_memo.h"
#include "bench/replay/time/scheduling_queue.h"
#include "bench/replay/time/sim_clock.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

// Not thread-safe. Pods have the numbers from 0 in the order in which they arrive.
class EventLoop {
 public:
  virtual ~EventLoop() = default;

  // Until that moment, which is not one of an event. Error: that of Put.
  Status Run(Instant horizon);

 protected:
  struct PodRun {
    NodeIndex node = kNoNode;  // where it runs
    Instant since;             // it runs there
    int starts = 0;
    bool waits = false;  // it is in the queue
  };
  struct Kind {
    std::size_t number;  // RoomMemo's
    const RequestShape& shape;
  };

  // A pod of a drawn stream: its number is its name.
  static PodRequest PodNumbered(std::size_t n, const RequestShape& shape);

  // kinds: how many KindOf tells apart.
  EventLoop(std::size_t pods, std::size_t kinds) : room_(kinds), runs_(pods) {}

  [[nodiscard]] Instant now() const { return clock_.Now(); }
  [[nodiscard]] std::size_t arrived() const { return arrived_; }
  [[nodiscard]] std::int64_t attempts() const { return attempts_; }  // to place a pod
  [[nodiscard]] std::uint64_t trace() const { return trace_.value(); }
  [[nodiscard]] const std::vector<PodRun>& runs() const { return runs_; }

  // What the simulation says of a pod.
  [[nodiscard]] virtual Instant ArrivalOf(std::size_t n) const = 0;
  [[nodiscard]] virtual Duration TimeLeft(std::size_t n) const = 0;  // it runs, if it starts now
  [[nodiscard]] virtual Kind KindOf(std::size_t n) const = 0;
  [[nodiscard]] virtual std::shared_ptr<const Snapshot> Cluster() const = 0;

  // What it does. Put returns the pod's node; empty: there is no room. `finished`: not Interrupted.
  virtual int Arrive(std::size_t n) = 0;  // returns its priority
  virtual Result<std::optional<NodeIndex>> Put(std::size_t n) = 0;
  // Whether the last Put found room that was kept for others.
  [[nodiscard]] virtual bool WasKeptAway() const { return false; }
  // An attempt that certainly fails: Put is not called.
  virtual void Skipped(std::size_t) {}
  virtual void Started(std::size_t n) = 0;
  virtual void Ended(std::size_t n, bool finished) = 0;  // it is still in runs()
  virtual void Advancing(Instant to) = 0;                // the clock has not moved yet

  // Events of the simulation's own.
  [[nodiscard]] virtual std::optional<Instant> NextOwnEvent() const { return std::nullopt; }
  virtual void HandleOwnEvents() {}
  // The pod loses its node and waits again. Requires: it runs.
  void Interrupt(std::size_t n);
  // The pod goes on to another node, where it runs for TimeLeft. The cluster knows it already.
  // Requires: it runs.
  void Move(std::size_t n, NodeIndex to);
  // The pod runs there without a turn in the queue. The cluster knows it already. Requires: it
  // waits.
  void Seat(std::size_t n, NodeIndex node) { Start(n, node); }

 private:
  // Void where the pod has lost its node since.
  struct Leaving {
    Instant at;
    SchedulingQueue::Pod pod;
    int start;
    friend bool operator>(const Leaving& a, const Leaving& b) {
      return std::tie(a.at, a.pod) > std::tie(b.at, b.pod);
    }
  };

  [[nodiscard]] std::optional<Instant> NextMoment() const;
  void AdvanceTo(Instant moment);
  void EndPods();
  void Start(std::size_t n, NodeIndex node);
  void End(std::size_t n, bool finished);
  void AddPods();
  Status TryPods();
  Result<std::optional<NodeIndex>> Try(std::size_t n);

  SimClock clock_;
  SchedulingQueue queue_;
  RoomMemo room_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<PodRun> runs_;
  std::size_t arrived_ = 0;
  std::int64_t attempts_ = 0;
  EventTrace trace_;
};

}  // namespace berth::replay
