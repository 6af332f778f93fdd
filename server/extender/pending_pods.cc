// SPDX-License-Identifier: Apache-2.0
#include "server/extender/pending_pods.h"

#include <utility>

#include "cluster/values/held_bytes.h"

namespace berth {
namespace {

constexpr std::size_t kPerEntry = 192;  // what keeping a pod takes beside it and its UID
constexpr std::size_t kMostSchedulerBytes = 253;

}  // namespace

bool PendingPods::Remember(const PodRequest& pod) {
  auto kept = std::make_shared<const PodRequest>(pod);
  const std::string& uid = kept->id.uid;
  const std::size_t bytes = kPerEntry + uid.size() + HeldBytes(*kept);
  const MutexLock lock(mutex_);
  if (schedulers_.size() < kMostSchedulers && pod.scheduler.size() <= kMostSchedulerBytes) {
    schedulers_.insert(pod.scheduler);
  }
  const bool is_new = !recent_.contains(uid);
  recent_.Put(uid, std::move(kept), bytes);
  return is_new;
}

std::shared_ptr<const PodRequest> PendingPods::Find(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto* const known = recent_.Touch(uid);
  return known == nullptr ? nullptr : *known;
}

std::shared_ptr<const PodRequest> PendingPods::FindNamed(std::string_view namespace_name,
                                                         std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const auto& entry : recent_) {
    const PodId& id = entry.value->id;
    if (id.name == name && id.namespace_name == namespace_name) return entry.value;
  }
  return nullptr;
}

void PendingPods::Forget(const std::string& uid) {
  const MutexLock lock(mutex_);
  recent_.Erase(uid);
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
  return recent_.bytes();
}

}  // namespace berth
