// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/scheduling_queue.h"

#include <algorithm>
#include <tuple>

namespace berth::replay {
namespace {

Duration BackoffAfter(int failures) {
  Duration backoff = SchedulingQueue::kFirstBackoff;
  for (int i = 1; i < failures && backoff < SchedulingQueue::kLongestBackoff; ++i) backoff *= 2;
  return std::min(backoff, SchedulingQueue::kLongestBackoff);
}

// The first multiple of the step that is not before `at`.
Instant RoundedUp(Instant at, Duration step) {
  const Duration past = at.time_since_epoch() % step;
  return past == Duration::zero() ? at : at + (step - past);
}

}  // namespace

bool SchedulingQueue::LaterTurn::operator()(const Waiting& a, const Waiting& b) const {
  return std::tuple(-a.turn.priority, a.since, a.turn.pod) >
         std::tuple(-b.turn.priority, b.since, b.turn.pod);
}

bool SchedulingQueue::LaterEnd::operator()(const Waiting& a, const Waiting& b) const {
  return std::tuple(a.backoff_ends, a.turn.pod) > std::tuple(b.backoff_ends, b.turn.pod);
}

void SchedulingQueue::Add(Pod pod, int priority, Instant now) {
  active_.push({{pod, priority, 0}, now, now});
}

std::optional<SchedulingQueue::Turn> SchedulingQueue::Next() {
  if (active_.empty()) return std::nullopt;
  const Turn turn = active_.top().turn;
  active_.pop();
  return turn;
}

void SchedulingQueue::Failed(const Turn& turn, Instant now) {
  const int failures = turn.failures + 1;
  unschedulable_.push_back(
      {{turn.pod, turn.priority, failures}, now, now + BackoffAfter(failures)});
}

void SchedulingQueue::Event(Instant now) {
  for (const Waiting& waiting : unschedulable_) {
    if (waiting.backoff_ends <= now) {
      active_.push(waiting);
    } else {
      backoff_.push(waiting);
    }
  }
  unschedulable_.clear();
}

void SchedulingQueue::Tick(Instant now) {
  while (!backoff_.empty() && RoundedUp(backoff_.top().backoff_ends, kBackoffTick) <= now) {
    active_.push(backoff_.top());
    backoff_.pop();
  }
  while (!unschedulable_.empty() && RoundedUp(unschedulable_.front().since + kLongestUnschedulable,
                                              kUnschedulableTick) <= now) {
    active_.push(unschedulable_.front());
    unschedulable_.pop_front();
  }
}

std::optional<Instant> SchedulingQueue::NextTick() const {
  std::optional<Instant> next;
  if (!backoff_.empty()) next = RoundedUp(backoff_.top().backoff_ends, kBackoffTick);
  if (!unschedulable_.empty()) {
    const Instant flush =
        RoundedUp(unschedulable_.front().since + kLongestUnschedulable, kUnschedulableTick);
    next = next ? std::min(*next, flush) : flush;
  }
  return next;
}

}  // namespace berth::replay
