// SPDX-License-Identifier: Apache-2.0
#include "server/service/second_look.h"

#include <algorithm>
#include <utility>

#include "base/keep_going.h"

namespace berth {
namespace {

// It waits in real time, since it waits for the real cluster.
Instant Now() { return std::chrono::steady_clock::now(); }

}  // namespace

SecondLook::SecondLook(const Parts& parts, const Waits& waits)
    : parts_(parts),
      waits_(waits),
      refused_(parts.groups, parts.rooms, parts.fits),
      saved_(waits.saved),
      counted_(Now()),
      thread_([this] { KeepGoing([this] { Run(); }); }) {
  parts_.state.OnPublish([this] { Changed(); });
}

SecondLook::~SecondLook() {
  parts_.state.OnPublish({});
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  work_.NotifyAll();
  thread_.join();
}

void SecondLook::Changed() {
  {
    const MutexLock lock(mutex_);
    if (!is_awaited_) return;
    changed_ = true;
  }
  work_.NotifyOne();
}

bool SecondLook::MayWait() {
  const Instant now = Now();
  const auto earned = std::chrono::duration_cast<Duration>((now - counted_) * waits_.part);
  counted_ = now;
  saved_ = std::min(waits_.saved, saved_ + earned);
  if (saved_ < waits_.usual) return false;
  saved_ -= waits_.usual;
  return true;
}

bool SecondLook::Hold(bool for_evicted, Answer answer) {
  {
    const MutexLock lock(mutex_);
    if (ending_ || held_.size() >= kMostHeld) return false;
    if (!for_evicted && !MayWait()) return false;
    held_.push_back({std::move(answer), Now() + (for_evicted ? waits_.for_evicted : waits_.usual)});
    // Else a change between the first answer and now would be missed.
    changed_ = is_awaited_ = true;
  }
  work_.NotifyOne();
  return true;
}

void SecondLook::Refused(std::shared_ptr<const PodRequest> pod,
                         std::shared_ptr<const Snapshot> snapshot,
                         std::optional<std::uint64_t> kept_out) {
  {
    const MutexLock lock(mutex_);
    if (news_.size() >= kMostNews) return;
    news_.emplace_back(Refusal{std::move(pod), std::move(snapshot), kept_out});
    changed_ = is_awaited_ = true;  // it has changed since that snapshot, perhaps
  }
  work_.NotifyOne();
}

void SecondLook::Found(const PodId& pod) {
  const MutexLock lock(mutex_);
  // No hurry. Where nobody waits, this pod does not either.
  if (is_awaited_ && news_.size() < kMostNews) news_.emplace_back(pod);
}

void SecondLook::ClassesChanged() {
  {
    const MutexLock lock(mutex_);
    if (news_.size() >= kMostNews) return;
    news_.emplace_back(OtherClasses());
    changed_ = true;
  }
  work_.NotifyOne();
}

bool SecondLook::NextWork(std::vector<Held>& held, std::vector<News>& news) {
  const MutexLock lock(mutex_);
  while (!ending_ && !changed_) {
    Instant next = next_look_;
    for (const Held& one : held_) next = std::min(next, one.until);
    if (Now() >= next) break;
    if (next == Instant::max()) {
      work_.Wait(mutex_);
    } else {
      work_.WaitUntil(mutex_, next);
    }
  }
  changed_ = false;
  held.swap(held_);
  news.swap(news_);
  return !ending_;
}

void SecondLook::AnswerHeld(std::vector<Held> held, bool ending) {
  std::erase_if(held, [ending](const Held& one) {
    const bool is_last = ending || Now() >= one.until;
    return one.answer(is_last) || is_last;
  });
  if (held.empty()) return;
  const MutexLock lock(mutex_);
  std::ranges::move(held, std::back_inserter(held_));
}

void SecondLook::Run() {
  bool more = true;
  while (more) {
    std::vector<Held> held;
    std::vector<News> news;
    more = NextWork(held, news);
    AnswerHeld(std::move(held), !more);
    for (News& told : news) {
      if (auto* refusal = std::get_if<Refusal>(&told)) {
        refused_.Refused(std::move(refusal->pod), std::move(refusal->snapshot), Now(),
                         refusal->kept_out);
      } else if (const auto* pod = std::get_if<PodId>(&told)) {
        refused_.Found(pod->uid);
      } else {
        refused_.ClassesChanged();
      }
    }
    refused_.WakeThoseWithRoom(parts_.state.Current(), Now(),
                               [this](const PodId& pod) { return parts_.waker.Wake(pod); });
    const MutexLock lock(mutex_);
    next_look_ = refused_.next();
    is_awaited_ = refused_.size() > 0 || !held_.empty() || !news_.empty();
  }
}

}  // namespace berth
