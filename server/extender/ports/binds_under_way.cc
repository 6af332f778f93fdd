// SPDX-License-Identifier: Apache-2.0
#include "server/extender/ports/binds_under_way.h"

#include <utility>

namespace berth {

BindsUnderWay::Begun BindsUnderWay::Begin(const Entry& bind) {
  const MutexLock lock(mutex_);
  const BindRequest& request = bind->request;
  const auto [entry, is_new] = by_uid_.try_emplace(request.uid, OfPod{request.node, {}});
  if (is_new) return {};
  OfPod& pod = entry->second;
  if (!pod.node.empty() && pod.node != request.node) return {Outcome::kElsewhere, pod.node};
  if (in_line_ >= kMostInLine) return {Outcome::kTooMany};
  pod.line.push_back(bind);
  ++in_line_;
  return {Outcome::kInLine};
}

bool BindsUnderWay::BeginToAsk(const std::string& uid) {
  const MutexLock lock(mutex_);
  return by_uid_.try_emplace(uid).second;
}

BindsUnderWay::Entry BindsUnderWay::End(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto entry = by_uid_.find(uid);
  OfPod& pod = entry->second;
  if (pod.line.empty()) {
    by_uid_.erase(entry);
    return nullptr;
  }
  Entry next = std::move(pod.line.front());
  pod.line.pop_front();
  --in_line_;
  pod.node = next->request.node;
  return next;
}

}  // namespace berth
