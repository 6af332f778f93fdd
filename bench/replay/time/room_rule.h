// SPDX-License-Identifier: Apache-2.0
//
// RoomRule: who moves running pods so that pods that wait have room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "scoring/reservations/reservations.h"

namespace berth::replay {

// What a rule sees. Valid during the call.
struct RoomView {
  Instant now;
  std::shared_ptr<const Snapshot> cluster;
  const Reservations* reservations = nullptr;  // nullptr: nothing is kept for pods that wait
  const std::set<std::size_t>& waiting;  // pods with GPUs, by their number: in order of arrival
  std::function<PodRequest(std::size_t)> pod;
  std::function<Instant(std::size_t)> arrived;
  std::int64_t placed = 0;  // pods that have started, but for those at the beginning
  std::int64_t moved = 0;   // pods, by the rule
};

// What it does, at one moment. All moves are made, then the pod has its place. Pods on nodes have
// PodRequest::checkpointed: when they began to run there.
struct RoomChange {
  std::vector<PodPlacement> moves = {};     // pods that run, and where they go
  std::optional<std::size_t> lets_in = {};  // this pod...
  Placement place = {};                     // ...goes there
  std::vector<std::string> evicted = {};    // UIDs: they wait again
};

class RoomRule {
 public:
  virtual ~RoomRule() = default;
  // How often it looks.
  [[nodiscard]] virtual Duration period() const = 0;
  // Called until it finds nothing to do at that moment. Places fit once all pods that move have
  // left theirs.
  virtual std::optional<RoomChange> Look(const RoomView& view) = 0;
};

// The wall clock of a replay: WallTime of an Instant of the simulation.
inline WallTime WallOf(Instant now) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(now.time_since_epoch()));
}

}  // namespace berth::replay
