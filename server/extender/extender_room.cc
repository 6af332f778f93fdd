// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "server/extender/extender.h"

namespace berth {

RoomUnits Extender::WouldMakeRoom(const Moment& now, std::span<const PodRequest> pods,
                                  const RoomGoals& goals, const std::function<const char*()>& stops,
                                  const RoomLimits& limits) const {
  const auto [budgets, eviction_limits] = LimitsNow();
  const Instant end = parts_.clock.Now() + limits.in_all;
  RoomWish wish{.ask = {.snapshot = now.snapshot,
                        .goal = {},
                        .rules = {.now = eviction_limits.now,
                                  .budgets = *budgets,
                                  .allows = limits.may_move,
                                  .keep_model = now.policy->moves_keep_model},
                        .guard = now.policy->guard,
                        .reservations = &now.reservations},
                .pods = pods,
                .idle_nodes = goals.idle_nodes,
                .model = goals.model,
                .most_moves = goals.most_moves};
  wish.starts_whole = [this, &now](const PodRequest& pod) {
    return StartsWithGang(*now.policy, pod);
  };
  if (parts_.domains != nullptr) wish.tree = parts_.domains->Of(now.snapshot);
  wish.limits = [&]() -> std::optional<SearchLimits> {
    const Instant begin = parts_.clock.Now();
    if (begin >= end || (stops && stops() != nullptr)) return std::nullopt;
    const Instant until = std::min(end, begin + limits.for_one);
    return SearchLimits{.enough = [this, until, &stops] {
      return parts_.clock.Now() >= until || (stops && stops() != nullptr);
    }};
  };
  return RoomFor(wish);
}

std::vector<RoomWithin> Extender::WouldBeIdle(const Moment& now, Duration time) const {
  const auto [budgets, eviction_limits] = LimitsNow();
  RoomAsk ask{.snapshot = now.snapshot,
              .goal = {},
              .rules = {.now = eviction_limits.now,
                        .budgets = *budgets,
                        .keep_model = now.policy->moves_keep_model},
              .guard = now.policy->guard,
              .reservations = &now.reservations};
  ask.limits.enough = [this, end = parts_.clock.Now() + time] { return parts_.clock.Now() >= end; };
  return FindRoomWithin(ask);
}

}  // namespace berth
