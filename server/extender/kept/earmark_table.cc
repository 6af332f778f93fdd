// SPDX-License-Identifier: Apache-2.0
#include "server/extender/kept/earmark_table.h"

#include <algorithm>

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

void EarmarkTable::Agree(std::string uid, std::vector<EarmarkLine::Agreed> nodes) {
  const MutexLock lock(mutex_);
  if (news_.size() < kMostNews) news_.emplace_back(Agreed{std::move(uid), std::move(nodes)});
}

bool EarmarkTable::IsTimeForUnasked(Instant now) {
  const MutexLock lock(mutex_);
  if (unasked_ && now - *unasked_ < EarmarkLine::kBetweenScans) return false;
  unasked_ = now;
  return true;
}

Reservations EarmarkTable::Newest(std::shared_ptr<const KeptNodes> kept, Instant now) const {
  const MutexLock lock(mutex_);
  return Reservations(newest_, std::move(kept), ahead_, now);
}

bool EarmarkTable::IsDue(const std::shared_ptr<const Snapshot>& snapshot,
                         const std::shared_ptr<const KeptNodes>& kept, Instant now) const {
  const MutexLock lock(mutex_);
  if (!news_.empty()) return true;
  if (is_empty_) return false;
  return looked_at_ != snapshot || kept_then_ != kept || (next_ && *next_ <= now);
}

Reservations EarmarkTable::On(const std::shared_ptr<const Snapshot>& snapshot,
                              const std::shared_ptr<const KeptNodes>& kept,
                              const std::optional<EarmarkLimits>& limits,
                              const EarmarkLine::Time& time, const Waits& waits, const Wake& wake,
                              EarmarkLine::Scope scope) {
  if (!limits) return Reservations(nullptr, kept, nullptr, time.now);
  // A request's look may have left something to do.
  const auto is_anybody = [this] {
    const MutexLock lock(mutex_);
    return !is_empty_ || !news_.empty();
  };
  const bool is_due =
      scope == EarmarkLine::Scope::kAll ? is_anybody() : IsDue(snapshot, kept, time.now);
  if (is_due && !looks_.exchange(true)) {
    std::vector<PodId> wakes;
    {
      const Cleanup over([this] { looks_ = false; });
      LookAt(snapshot, kept, *limits, time, waits, scope, wakes);
    }
    if (!wakes.empty()) wake(wakes);
  }
  return Newest(kept, time.now);
}

void EarmarkTable::LookAt(const std::shared_ptr<const Snapshot>& snapshot,
                          const std::shared_ptr<const KeptNodes>& kept, const EarmarkLimits& limits,
                          const EarmarkLine::Time& time, const Waits& waits,
                          EarmarkLine::Scope scope, std::vector<PodId>& wakes) {
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
    } else if (auto* const agreed = std::get_if<Agreed>(&one)) {
      line_.Agree(agreed->uid, std::move(agreed->nodes), now);
    } else {
      line_.Leave(std::get<std::string>(one));
    }
  }
  if (now - counted_ >= kBetweenCounts) {
    line_.KeepIf([&](const PodRequest& first) { return may_stand(first) && waits(first); });
    counted_ = now;
  }
  wakes = line_.Look(snapshot, limits, time, waits, scope, kept);
  std::optional<Instant> next = line_.NextLook();
  if (line_.size() > 0) next = std::min(next.value_or(Instant::max()), counted_ + kBetweenCounts);
  const MutexLock lock(mutex_);
  newest_ = line_.earmarks();
  ahead_ = line_.ahead();
  looked_at_ = snapshot;
  kept_then_ = kept;
  next_ = next;
  is_empty_ = line_.size() == 0 && newest_->empty();
}

}  // namespace berth
