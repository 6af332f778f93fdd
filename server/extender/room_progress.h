// SPDX-License-Identifier: Apache-2.0
//
// RoomProgress: the plan of moves that Berth carries out (room_maker.h), and how far it is. A
// value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct RoomProgress {
  enum class Step : std::uint8_t {
    kNext,   // its turn has not come
    kEnds,   // it was evicted, and its successor has no place yet
    kMoved,  // its successor is there
  };
  struct Move {
    PodId pod;
    std::string from, to;
    Step step = Step::kNext;
    friend bool operator==(const Move&, const Move&) = default;
  };
  std::string name;  // "ml/train": of the pod or gang that it is for; "2 idle nodes"
  bool is_gang = false;
  WallTime begun = {};
  std::vector<Move> moves = {};  // in order
  // How it went, in a sentence; empty: it is under way.
  std::string ended = {};
  bool is_done = false;  // it has ended, and the room was made
  friend bool operator==(const RoomProgress&, const RoomProgress&) = default;
};

}  // namespace berth
