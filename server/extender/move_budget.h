// SPDX-License-Identifier: Apache-2.0
//
// MoveBudget: how many pods Berth has moved within the last hour: in all, by namespace, and by the
// node that they left. Kept in memory: a new leader counts anew (RoomMaker waits first).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/config.h"

namespace berth {

// Not thread-safe.
class MoveBudget {
 public:
  struct Move {
    std::string namespace_name, node;
  };
  // Whether all of these may be made too.
  [[nodiscard]] bool Allows(std::span<const Move> moves, const MakeRoomConfig& limits, Instant now);
  void Count(Move move, Instant now);

 private:
  struct Made {
    Move move;
    Instant when;
  };
  std::vector<Made> made_;  // in the last hour; as many as Allows let pass
};

}  // namespace berth
