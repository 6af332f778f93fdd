// SPDX-License-Identifier: Apache-2.0
#include "server/extender/pending_pods.h"

namespace berth {

bool PendingPods::Remember(const PodRequest& pod) {
  auto copy = std::make_shared<const PodRequest>(pod);
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(pod.id.uid);
  const bool is_new = known == by_uid_.end();
  if (!is_new) {
    const Recent::iterator entry = known->second;
    by_uid_.erase(known);  // first: its key lives in the entry
    recent_.erase(entry);
  }
  recent_.push_front(std::move(copy));
  by_uid_.emplace(recent_.front()->id.uid, recent_.begin());
  if (recent_.size() > capacity_) {
    by_uid_.erase(recent_.back()->id.uid);
    recent_.pop_back();
  }
  return is_new;
}

std::shared_ptr<const PodRequest> PendingPods::Find(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(uid);
  if (known == by_uid_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, known->second);
  return recent_.front();
}

void PendingPods::Forget(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(uid);
  if (known == by_uid_.end()) return;
  const Recent::iterator entry = known->second;
  by_uid_.erase(known);
  recent_.erase(entry);
}

std::size_t PendingPods::size() const {
  const MutexLock lock(mutex_);
  return recent_.size();
}

}  // namespace berth
