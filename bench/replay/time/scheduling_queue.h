// SPDX-License-Identifier: Apache-2.0
//
// SchedulingQueue: the pods that wait, as kube-scheduler keeps them.
//
//                 Add            Next
//        (new) ---------> active ------> an attempt, and when it failed: Failed
//                           ^ ^                       |
//        Event, backoff is  | | Tick: backoff is over |
//        over already       | |                       v
//                           | +---- backoff <---- unschedulable
//                           |         Event           |
//                           +-------------------------+   also, unasked, after five minutes
//
// Order: higher priority first, then who was put into the queue earlier (a failed attempt puts the
// pod into the queue again), then the lower number. Backoff: 1 s after the first failure, doubled
// by each, 10 s at most. An Event may have made room: a pod was deleted or bound; Berth rejects as
// an extender, and after such a rejection kube-scheduler retries on every registered event.
//
// Source: k8s.io/kubernetes 1.36 pkg/scheduler/backend/queue (scheduling_queue.go,
// backoff_queue.go) and PrioritySort. As there, backoff ends are seen on whole seconds and the five
// minutes on whole half minutes. Left out: the feature SchedulerPopFromBackoffQ, by which a
// scheduler with nothing else to do cuts a backoff short - where decisions take no time it would
// make every backoff zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <vector>

#include "base/clock.h"

namespace berth::replay {

// Not thread-safe. Requires: `now` never goes back.
class SchedulingQueue {
 public:
  using Pod = std::uint32_t;  // a number of the caller's

  static constexpr Duration kFirstBackoff = std::chrono::seconds(1);
  static constexpr Duration kLongestBackoff = std::chrono::seconds(10);
  static constexpr Duration kBackoffTick = std::chrono::seconds(1);
  static constexpr Duration kLongestUnschedulable = std::chrono::minutes(5);
  static constexpr Duration kUnschedulableTick = std::chrono::seconds(30);

  // Requires: the pod is not waiting.
  void Add(Pod pod, int priority, Instant now);

  // The pod whose turn it is; it leaves all queues until Failed.
  struct Turn {
    Pod pod = 0;
    int priority = 0;
    int failures = 0;  // attempts before this one
  };
  std::optional<Turn> Next();

  // Its attempt found no place.
  void Failed(const Turn& turn, Instant now);

  void Event(Instant now);

  // Moves the pods whose time has come. Call it at NextTick, or later.
  void Tick(Instant now);
  // When a Tick moves a pod; empty if none will.
  [[nodiscard]] std::optional<Instant> NextTick() const;

  [[nodiscard]] std::size_t active() const { return active_.size(); }
  [[nodiscard]] std::size_t backing_off() const { return backoff_.size(); }
  [[nodiscard]] std::size_t unschedulable() const { return unschedulable_.size(); }

 private:
  struct Waiting {
    Turn turn;
    Instant since;  // put into the queue
    Instant backoff_ends;
  };
  struct LaterTurn {
    bool operator()(const Waiting& a, const Waiting& b) const;
  };
  struct LaterEnd {
    bool operator()(const Waiting& a, const Waiting& b) const;
  };

  std::priority_queue<Waiting, std::vector<Waiting>, LaterTurn> active_;
  std::priority_queue<Waiting, std::vector<Waiting>, LaterEnd> backoff_;
  std::deque<Waiting> unschedulable_;  // by `since`
};

}  // namespace berth::replay
