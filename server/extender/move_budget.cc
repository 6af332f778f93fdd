// SPDX-License-Identifier: Apache-2.0
#include "server/extender/move_budget.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace berth {

bool MoveBudget::Allows(std::span<const Move> moves, const MakeRoomConfig& limits, Instant now) {
  std::erase_if(made_, [now](const Made& one) { return now - one.when >= std::chrono::hours(1); });
  const auto count = [&](std::string Move::*field, const std::string& value) {
    return std::ranges::count_if(moves, [&](const Move& one) { return one.*field == value; }) +
           std::ranges::count_if(made_, [&](const Made& one) { return one.move.*field == value; });
  };
  return std::ssize(made_) + std::ssize(moves) <= limits.moves_per_hour &&
         std::ranges::all_of(moves, [&](const Move& one) {
           return count(&Move::namespace_name, one.namespace_name) <= limits.moves_per_namespace &&
                  count(&Move::node, one.node) <= limits.moves_per_node;
         });
}

void MoveBudget::Count(Move move, Instant now) { made_.push_back({std::move(move), now}); }

}  // namespace berth
