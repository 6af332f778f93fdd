// SPDX-License-Identifier: Apache-2.0
//
// GangView: what is known of a gang at one moment, for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cluster/values/gang.h"
#include "server/extender/gangs/roster/gang_unit.h"

namespace berth {

struct GangView {
  GangId id;
  std::string_view state;  // as in the picture of gang_table.h
  std::int64_t minimum = 0;
  std::optional<int> total;
  std::int64_t placed = 0, waiting = 0, planned = 0, held = 0;
  Duration age{};
  std::string why;         // it waits, in a sentence
  std::string lacks = {};  // the name of its member that has no place; "" = nobody knows one
  bool never = false;      // GangLack::for_good
};

GangView ViewOf(const GangUnit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
// nullopt: nothing is kept of it.
std::optional<GangView> Shown(const GangUnit& unit, Instant now) BERTH_EXCLUDES(unit.mutex);

}  // namespace berth
