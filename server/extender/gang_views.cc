// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what is known of each gang.
#include <algorithm>
#include <string>

#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

GangView GangTable::ViewOf(const Unit& unit, Instant now) const {
  GangView view{.id = unit.says.id,
                .state = "gathering",
                .minimum = unit.says.minimum.value_or(0),
                .total = unit.says.total,
                .placed = unit.placed,
                .waiting = unit.waiting,
                .planned = std::ssize(unit.plan) + std::ssize(unit.kept),
                .held = static_cast<std::int64_t>(unit.held()),
                .age = now - unit.since,
                .why = {}};
  const std::int64_t members = view.placed + view.waiting;
  if (!unit.says.minimum) {
    view.why = "no object says how many pods it needs";
  } else if (view.placed >= view.minimum || (view.placed > 0 && view.waiting == 0)) {
    view.state = "whole";  // or what is left of it: its pods end one by one
  } else if (unit.phase == Unit::Phase::kCommitting) {
    view.state = "committing";
  } else if (unit.began && view.placed > 0) {
    view.state = "begun";
  } else if (!unit.plan.empty()) {
    view.state = "planned";
  } else if (members >= view.minimum) {
    view.state = "waiting";
  }
  if (!view.why.empty() || view.state == "whole") return view;
  if (members < view.minimum) {
    view.why = gangs::Count(members, "pod") + " of " + std::to_string(view.minimum) + " are there";
  } else if (!unit.nominated.empty()) {
    view.why = "pods of lower priority are evicted for it";
  } else if (unit.shortage) {
    view.why = std::to_string(view.placed + unit.shortage->fits) + " of " +
               gangs::Count(view.minimum, "member") + " fit" +
               (unit.shortage_domain.empty() ? "" : " in " + unit.shortage_domain) +
               (unit.shortage->searched ? "" : " (not all ways were tried)");
  } else if (now < unit.not_before) {
    view.why = "it is tried again soon";
  }
  return view;
}

std::vector<GangView> GangTable::Views(Instant now) const {
  const MutexLock lock(mutex_);
  std::vector<GangView> views;
  views.reserve(units_.size());
  for (const auto& [id, unit] : units_) {
    if (unit.placed + unit.waiting > 0 || !unit.is_idle()) views.push_back(ViewOf(unit, now));
  }
  return views;
}

}  // namespace berth
