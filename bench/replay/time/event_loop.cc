// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/event_loop.h"

#include <algorithm>
#include <string>

namespace berth::replay {

Status EventLoop::Run(Instant horizon) {
  while (const auto moment = NextMoment()) {
    if (*moment >= horizon) break;
    AdvanceTo(*moment);
    EndPods();
    HandleOwnEvents();
    AddPods();
    queue_.Tick(now());
    BERTH_TRY_STATUS(TryPods());
  }
  AdvanceTo(horizon);
  return {};
}

PodRequest EventLoop::PodNumbered(std::size_t n, const RequestShape& shape) {
  PodRequest pod;
  pod.id.namespace_name = "replay";
  pod.id.name = "pod-" + std::to_string(n);
  pod.id.uid = pod.id.name;
  pod.shape = shape;
  return pod;
}

void EventLoop::Interrupt(std::size_t n) {
  End(n, false);
  runs_[n].waits = true;
  queue_.Add(static_cast<SchedulingQueue::Pod>(n), 0, now());
}

void EventLoop::Move(std::size_t n, NodeIndex to) {
  PodRun& run = runs_[n];
  room_.Freed(run.node);
  run = {to, now(), run.starts + 1};
  trace_.Add('m', now() + TimeLeft(n), n, to);
  leaving_.push({now() + TimeLeft(n), static_cast<SchedulingQueue::Pod>(n), run.starts});
  queue_.Event(now());
}

// The next moment at which something happens; empty when nothing will.
std::optional<Instant> EventLoop::NextMoment() const {
  std::optional<Instant> next = queue_.NextTick();
  const auto or_at = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  if (arrived_ < runs_.size()) or_at(ArrivalOf(arrived_));
  if (const auto own = NextOwnEvent()) or_at(*own);
  if (!leaving_.empty()) or_at(leaving_.top().at);
  return next;
}

void EventLoop::AdvanceTo(Instant moment) {
  Advancing(moment);
  clock_.Advance(moment - now());
}

void EventLoop::EndPods() {
  while (!leaving_.empty() && leaving_.top().at <= now()) {
    const Leaving leaving = leaving_.top();
    leaving_.pop();
    const PodRun& run = runs_[leaving.pod];
    if (run.node != kNoNode && run.starts == leaving.start) End(leaving.pod, true);
  }
}

void EventLoop::End(std::size_t n, bool finished) {
  trace_.Add(finished ? 'e' : 'i', now(), n, runs_[n].node);
  Ended(n, finished);
  room_.Freed(runs_[n].node);
  runs_[n].node = kNoNode;
  queue_.Event(now());
}

void EventLoop::AddPods() {
  for (; arrived_ < runs_.size() && ArrivalOf(arrived_) <= now(); ++arrived_) {
    trace_.Add('a', now(), arrived_, KindOf(arrived_).number);
    runs_[arrived_].waits = true;
    queue_.Add(static_cast<SchedulingQueue::Pod>(arrived_), Arrive(arrived_), now());
  }
}

Status EventLoop::TryPods() {
  while (const auto turn = queue_.Next()) {
    const std::size_t n = turn->pod;
    if (!runs_[n].waits) continue;  // it was seated meanwhile
    BERTH_TRY(const std::optional<NodeIndex> node, Try(n));
    if (!node) {
      queue_.Failed(*turn, now());
      continue;
    }
    Start(n, *node);
  }
  return {};
}

void EventLoop::Start(std::size_t n, NodeIndex node) {
  PodRun& run = runs_[n];
  run = {node, now(), run.starts + 1};
  trace_.Add('s', now() + TimeLeft(n), n, node);
  Started(n);
  leaving_.push({now() + TimeLeft(n), static_cast<SchedulingQueue::Pod>(n), run.starts});
  queue_.Event(now());
}

Result<std::optional<NodeIndex>> EventLoop::Try(std::size_t n) {
  ++attempts_;
  const Kind kind = KindOf(n);
  if (!room_.MayFit(kind.number, kind.shape, *Cluster())) {
    Skipped(n);
    return std::nullopt;
  }
  BERTH_TRY(const std::optional<NodeIndex> node, Put(n));
  trace_.Add('t', now(), n, node.value_or(kNoNode));
  if (!node && !WasKeptAway()) room_.Failed(kind.number);
  return node;
}

}  // namespace berth::replay
