// SPDX-License-Identifier: Apache-2.0
#include "server/extender/move_holds.h"

#include <algorithm>
#include <span>
#include <vector>

#include "cluster/values/alike.h"

namespace berth {
namespace {

bool IsSuccessor(const PodRequest& pod, const PodRequest& of) {
  return !of.controller.empty() && pod.controller == of.controller && pod.id.uid != of.id.uid &&
         pod.id.namespace_name == of.id.namespace_name && SamePodKind(pod, of);
}

}  // namespace

Status MoveHolds::Hold(const PodRequest& pod, const Placement& place) {
  PodPlacement stand_in{pod, place};
  stand_in.pod.id.uid = StandInOf(pod.id.uid);
  stand_in.pod.id.name += "-moves-here";
  BERTH_TRY_STATUS(state_.Plan(std::span(&stand_in, 1)));
  const MutexLock lock(mutex_);
  held_.insert_or_assign(pod.id.uid, Held{.pod = pod});
  return {};
}

void MoveHolds::Open(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto held = held_.find(uid);
  if (held == held_.end()) return;
  held->second.open = true;
  any_ = true;
}

bool MoveHolds::Has(const std::string& uid) const {
  const MutexLock lock(mutex_);
  return held_.contains(uid);
}

std::optional<PodId> MoveHolds::SuccessorOf(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto held = held_.find(uid);
  return held == held_.end() ? std::nullopt : held->second.successor;
}

void MoveHolds::Release(const std::string& uid) {
  std::vector<std::string> planned = {StandInOf(uid)};
  {
    const MutexLock lock(mutex_);
    const auto held = held_.find(uid);
    if (held == held_.end()) return;
    if (held->second.successor) planned.push_back(held->second.successor->uid);
    held_.erase(held);
    any_ = std::ranges::any_of(held_, [](const auto& entry) { return entry.second.open; });
  }
  (void)state_.Unplan(planned);
}

bool MoveHolds::Adopt(const PodRequest& pod) {
  if (!any_.load()) return false;
  std::string of;
  {
    const MutexLock lock(mutex_);
    for (auto& [uid, held] : held_) {
      if (!held.open || held.successor || !IsSuccessor(pod, held.pod)) continue;
      held.successor = pod.id;
      of = uid;
      break;
    }
  }
  if (of.empty()) return false;
  if (state_.HandOver(StandInOf(of), pod)) return true;
  const MutexLock lock(mutex_);
  const auto held = held_.find(of);
  if (held != held_.end() && held->second.successor == pod.id) held->second.successor.reset();
  return false;
}

bool MoveHolds::HasAdopted(const std::string& uid) const {
  if (!any_.load()) return false;
  const MutexLock lock(mutex_);
  return std::ranges::any_of(held_, [&uid](const auto& entry) {
    return entry.second.successor && entry.second.successor->uid == uid;
  });
}

}  // namespace berth
