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
  rooms_ = std::move(next);
  any_ = true;
  if (opens) ++openings_;
  return true;
}

void DeviceRooms::Drop(const std::string& node) {
  const MutexLock lock(mutex_);
  if (rooms_ == nullptr || !rooms_->contains(node)) return;
  auto next = std::make_shared<ByNode>(*rooms_);
  next->erase(node);
  any_ = !next->empty();
  rooms_ = next->empty() ? nullptr : std::move(next);
  ++openings_;
}

bool IsClosed(const DeviceRoom& room) { return !room.held || room.own_claims; }

bool KeepsOut(const DeviceRoom& room, const PodRequest& pod, bool claims) {
  if (!room.gang.empty() && room.gang == pod.gang.id) return false;
  return IsClosed(room) && room.pod.uid != pod.id.uid && (pod.shape.wants_gpu() || claims) &&
         pod.priority <= room.priority;
}

}  // namespace berth
