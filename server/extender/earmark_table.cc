// SPDX-License-Identifier: Apache-2.0
#include "server/extender/earmark_table.h"

#include <algorithm>
#include <utility>

#include "base/cleanup.h"

namespace berth {

void EarmarkTable::Stand(InLine waiter, std::shared_ptr<const Snapshot> refused_on) {
  const MutexLock lock(mutex_);
  if (news_.size() < kMostNews) news_.emplace_back(Stood{std::move(waiter), std::move(refused_on)});
}

void EarmarkTable::Leave(std::string name) {
  const MutexLock lock(mutex_);
  if (is_empty_ && news_.empty()) return;
  if (news_.size() < 2 * kMostNews) news_.emplace_back(std::move(name));  // else LookAt finds out
}

bool EarmarkTable::IsTimeForUnasked(Instant now) {
  const MutexLock lock(mutex_);
  if (unasked_ && now - *unasked_ < EarmarkLine::kBetweenScans) return false;
  unasked_ = now;
  return true;
}

std::shared_ptr<const Earmarks> EarmarkTable::Newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

bool EarmarkTable::IsDue(const std::shared_ptr<const Snapshot>& snapshot, Instant now) const {
  const MutexLock lock(mutex_);
  if (!news_.empty()) return true;
  if (is_empty_) return false;
  return looked_at_ != snapshot || (next_ && *next_ <= now);
}

std::shared_ptr<const Earmarks> EarmarkTable::On(const std::shared_ptr<const Snapshot>& snapshot,
                                                 const std::optional<EarmarkLimits>& limits,
                                                 const EarmarkLine::Time& time, const Waits& waits,
                                                 const Wake& wake, EarmarkLine::Scope scope) {
  static const auto kNothing = std::make_shared<const Earmarks>();
  if (!limits) return kNothing;
  // A request's look may have left something to do.
  const auto is_anybody = [this] {
    const MutexLock lock(mutex_);
    return !is_empty_ || !news_.empty();
  };
  const bool is_due = scope == EarmarkLine::Scope::kAll ? is_anybody() : IsDue(snapshot, time.now);
  if (is_due && !looks_.exchange(true)) {
    std::vector<PodId> wakes;
    {
      const Cleanup over([this] { looks_ = false; });
      LookAt(snapshot, *limits, time, waits, scope, wakes);
    }
    if (!wakes.empty()) wake(wakes);
  }
  return Newest();
}

void EarmarkTable::LookAt(const std::shared_ptr<const Snapshot>& snapshot,
                          const EarmarkLimits& limits, const EarmarkLine::Time& time,
                          const Waits& waits, EarmarkLine::Scope scope, std::vector<PodId>& wakes) {
  const Instant now = time.now;
  std::vector<News> news;
  {
    const MutexLock lock(mutex_);
    news.swap(news_);
  }
  const auto may_stand = [&limits](const PodRequest& first) {
    return first.gang.empty() || limits.gang > Duration::zero();
  };
  for (News& one : news) {
    if (auto* const stood = std::get_if<Stood>(&one)) {
      if (!may_stand(*stood->waiter.pods.front())) continue;
      line_.Stand(std::move(stood->waiter), stood->refused_on, now);
    } else {
      line_.Leave(std::get<std::string>(one));
    }
  }
  if (now - counted_ >= kBetweenCounts) {
    line_.KeepIf([&](const PodRequest& first) { return may_stand(first) && waits(first); });
    counted_ = now;
  }
  wakes = line_.Look(snapshot, limits, time, waits, scope);
  std::optional<Instant> next = line_.NextLook();
  if (line_.size() > 0) next = std::min(next.value_or(Instant::max()), counted_ + kBetweenCounts);
  const MutexLock lock(mutex_);
  newest_ = line_.earmarks();
  looked_at_ = snapshot;
  next_ = next;
  is_empty_ = line_.size() == 0 && newest_->empty();
}

}  // namespace berth
