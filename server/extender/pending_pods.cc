// SPDX-License-Identifier: Apache-2.0
#include "server/extender/pending_pods.h"

#include "cluster/values/held_bytes.h"

namespace berth {
namespace {

constexpr std::size_t kPerEntry = 128;  // what keeping a pod takes beside it
constexpr std::size_t kMostSchedulerBytes = 253;

}  // namespace

void PendingPods::Erase(Recent::iterator entry) {
  bytes_ -= entry->bytes;
  by_uid_.erase(entry->pod->id.uid);  // first: its key lives in the entry
  recent_.erase(entry);
}

bool PendingPods::Remember(const PodRequest& pod) {
  Entry entry{std::make_shared<const PodRequest>(pod), 0};
  entry.bytes = kPerEntry + HeldBytes(*entry.pod);
  const MutexLock lock(mutex_);
  if (schedulers_.size() < kMostSchedulers && pod.scheduler.size() <= kMostSchedulerBytes) {
    schedulers_.insert(pod.scheduler);
  }
  const auto known = by_uid_.find(pod.id.uid);
  const bool is_new = known == by_uid_.end();
  if (!is_new) Erase(known->second);
  bytes_ += entry.bytes;
  recent_.push_front(std::move(entry));
  by_uid_.emplace(recent_.front().pod->id.uid, recent_.begin());
  while (recent_.size() > 1 && (recent_.size() > capacity_ || bytes_ > most_bytes_)) {
    Erase(std::prev(recent_.end()));
  }
  return is_new;
}

std::shared_ptr<const PodRequest> PendingPods::Find(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(uid);
  if (known == by_uid_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, known->second);
  return recent_.front().pod;
}

std::shared_ptr<const PodRequest> PendingPods::FindNamed(std::string_view namespace_name,
                                                         std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const Entry& entry : recent_) {
    const PodId& id = entry.pod->id;
    if (id.name == name && id.namespace_name == namespace_name) return entry.pod;
  }
  return nullptr;
}

void PendingPods::Forget(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto known = by_uid_.find(uid);
  if (known != by_uid_.end()) Erase(known->second);
}

std::set<std::string> PendingPods::Schedulers() const {
  const MutexLock lock(mutex_);
  return schedulers_;
}

std::size_t PendingPods::size() const {
  const MutexLock lock(mutex_);
  return recent_.size();
}

std::size_t PendingPods::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace berth
