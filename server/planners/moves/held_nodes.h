// SPDX-License-Identifier: Apache-2.0
//
// HeldNodes: has node autoscalers leave alone the nodes that Berth keeps: those on which others are
// evicted or moved away for a pod (device_rooms.h), those that are kept idle (room_maker.h), and
// those with earmarks, gathered and reserved ones too. Idle nodes are what autoscalers delete.
//
// A node is held once it has been kept for kSteady, and let go when it has not been for kLinger.
// What a process before this one held is let go in the same way.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/clock.h"
#include "server/extender/extender.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"
#include "server/planners/moves/room_maker.h"

namespace berth {

class HeldNodes {
 public:
  static constexpr Duration kSteady = std::chrono::seconds(5);
  static constexpr Duration kLinger = std::chrono::minutes(2);
  static constexpr Duration kAgain = std::chrono::seconds(30);  // the same is asked for again
  static constexpr std::size_t kMost = 512;                     // nodes that are held at once
  static constexpr std::size_t kMostAtOnce = 8;                 // that a look changes

  // References: they outlive the object.
  struct Parts {
    const Extender& extender;
    const DeviceRooms& rooms;
    const RoomMaker& maker;
    NodeHolder& holder;
    const Clock& clock;
  };
  explicit HeldNodes(const Parts& parts) : parts_(parts) {}

  // Call it about once a second where this process leads.
  void Look();
  // This process leads no longer.
  void LetGo();

 private:
  using Since = std::map<std::string, Instant>;  // by node

  const Parts parts_;
  Since kept_, unneeded_;  // unneeded_: those that are held, and not kept any more
  Since asked_;            // when something was asked for
};

}  // namespace berth
