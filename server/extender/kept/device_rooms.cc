// SPDX-License-Identifier: Apache-2.0
#include "server/extender/kept/device_rooms.h"

#include <algorithm>
#include <span>
#include <utility>

#include "cluster/values/alike.h"

namespace berth {

std::shared_ptr<const DeviceRooms::ByNode> DeviceRooms::Current() const {
  static const auto kNone = std::make_shared<const ByNode>();
  if (!any_.load()) return kNone;
  const MutexLock lock(shown_);
  return rooms_;
}

std::shared_ptr<const KeptNodes> DeviceRooms::Kept() const {
  if (!any_.load()) return nullptr;
  const MutexLock lock(shown_);
  return kept_;
}

std::optional<DeviceRoom> DeviceRooms::Of(const std::string& uid) const {
  const auto rooms = Current();
  const auto own = std::ranges::find_if(
      *rooms, [&uid](const auto& entry) { return entry.second.pod.uid == uid; });
  return own == rooms->end() ? std::nullopt : std::optional(own->second);
}

bool DeviceRooms::Put(DeviceRoom room) {
  const MutexLock lock(mutex_);
  auto next = std::make_shared<ByNode>(*Current());
  if (next->size() >= kMost && !next->contains(room.node)) return false;
  const auto before = next->find(room.node);
  const bool opens = before != next->end() && IsClosed(before->second) && !IsClosed(room);
  std::string node = room.node;
  next->insert_or_assign(std::move(node), std::move(room));
  Publish(std::move(next));
  if (opens) ++openings_;
  return true;
}

void DeviceRooms::Drop(const std::string& node) {
  const MutexLock lock(mutex_);
  auto next = std::make_shared<ByNode>(*Current());
  if (next->erase(node) == 0) return;
  Publish(std::move(next));
  ++openings_;
}

void DeviceRooms::KeepFor(const GangId& gang, KeptNodes nodes) {
  const MutexLock lock(mutex_);
  const auto known = cleared_.find(gang);
  if (known == cleared_.end() ? nodes.empty() : known->second == nodes) return;
  KeptNodes before;
  if (known != cleared_.end()) {
    before = std::move(known->second);
    cleared_.erase(known);
  }
  std::size_t all = nodes.size(), own = nodes.size();
  for (const auto& [other, its] : cleared_) {
    all += its.size();
    if (other.namespace_name == gang.namespace_name) own += its.size();
  }
  if (all > kMostCleared || own > kMostCleared / 2) nodes.clear();
  const bool opens =
      std::ranges::any_of(before, [&nodes](const auto& one) { return !nodes.contains(one.first); });
  if (!nodes.empty()) cleared_.emplace(gang, std::move(nodes));
  Publish(Current());
  if (opens) ++openings_;
}

std::shared_ptr<const KeptNodes> DeviceRooms::KeptWith(const ByNode& rooms) const {
  KeptNodes kept;
  for (const auto& [gang, nodes] : cleared_) kept.insert(nodes.begin(), nodes.end());
  for (const auto& [node, room] : rooms) {
    const KeptNode its{{room.pod, room.gang, room.priority}};
    if (IsClosed(room)) kept.insert_or_assign(node, its);
  }
  if (kept.empty()) return nullptr;
  auto before = Kept();
  if (before != nullptr && kept == *before) return before;
  return std::make_shared<const KeptNodes>(std::move(kept));
}

void DeviceRooms::Publish(std::shared_ptr<const ByNode> rooms) {
  auto kept = KeptWith(*rooms);
  any_ = !rooms->empty() || kept != nullptr;
  const MutexLock lock(shown_);
  rooms_.swap(rooms);  // what was shown is freed after the lock
  kept_.swap(kept);
}

bool IsClosed(const DeviceRoom& room) { return !room.held || room.own_claims; }

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
