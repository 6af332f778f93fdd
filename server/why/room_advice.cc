// SPDX-License-Identifier: Apache-2.0
#include "server/why/room_advice.h"

#include <vector>

#include "scoring/room/room_units.h"
#include "server/extender/inquiry.h"

namespace berth {
std::optional<RoomAdvice> AdviseRoom(const Live& live, const Extender::Moment& now,
                                     const WaitingPod& waiting) {
  if (waiting.gated || !waiting.pod->refusal.empty() || !waiting.pod->shape.wants_gpu()) {
    return std::nullopt;
  }
  const std::vector<PodRequest> pods =
      RoomUnitOf(live.extender, live.waiting, live.pod_rules.groups(), now, waiting);
  if (pods.empty()) return std::nullopt;
  const RoomUnits units =
      Inquiry(live.extender, now)
          .WouldMakeRoom(pods, {}, {}, {.in_all = kRoomAdviceTime, .for_one = kRoomAdviceTime});
  const RoomUnit* const unit = FindUnit(units, *waiting.pod);
  if (unit == nullptr) return std::nullopt;
  return RoomAdvice{.name = unit->name,
                    .is_gang = unit->is_gang,
                    .moves = std::ssize(unit->plan.moves),
                    .least_moves = unit->plan.least_moves.price};
}

std::string TextOf(const RoomAdvice& advice) {
  return RoomSentence(advice.name, advice.is_gang, advice.moves);
}

}  // namespace berth
