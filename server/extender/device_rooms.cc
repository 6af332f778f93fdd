// SPDX-License-Identifier: Apache-2.0
#include "server/extender/device_rooms.h"

#include <algorithm>
#include <utility>

namespace berth {

std::shared_ptr<const DeviceRooms::ByNode> DeviceRooms::Current() const {
  if (!any_.load()) return nullptr;
  const MutexLock lock(mutex_);
  return rooms_;
}

std::optional<DeviceRoom> DeviceRooms::Of(const std::string& uid) const {
  const auto rooms = Current();
  if (rooms == nullptr) return std::nullopt;
  for (const auto& [node, room] : *rooms) {
    if (room.pod.uid == uid) return room;
  }
  return std::nullopt;
}

bool DeviceRooms::Put(DeviceRoom room) {
  const MutexLock lock(mutex_);
  auto next = rooms_ == nullptr ? std::make_shared<ByNode>() : std::make_shared<ByNode>(*rooms_);
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
  if (rooms_ == nullptr || !rooms_->contains(node)) return;
  auto next = std::make_shared<ByNode>(*rooms_);
  next->erase(node);
  Publish(std::move(next));
  ++openings_;
}

void DeviceRooms::Publish(std::shared_ptr<ByNode> next) {
  KeptNodes kept;
  for (const auto& [node, room] : *next) {
    if (IsClosed(room)) kept.emplace(node, KeptNode{{room.pod, room.gang, room.priority}});
  }
  if (kept.empty()) {
    kept_ = nullptr;
  } else if (kept_ == nullptr || kept != *kept_) {
    kept_ = std::make_shared<const KeptNodes>(std::move(kept));
  }
  any_ = !next->empty();
  rooms_ = next->empty() ? nullptr : std::move(next);
}

std::shared_ptr<const KeptNodes> DeviceRooms::Kept() const {
  if (!any_.load()) return nullptr;
  const MutexLock lock(mutex_);
  return kept_;
}

bool IsClosed(const DeviceRoom& room) { return !room.held || room.own_claims; }

}  // namespace berth
