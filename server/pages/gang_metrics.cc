// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "server/pages/metrics_parts.h"

namespace berth {
namespace {

constexpr std::array<std::string_view, 6> kStates = {"gathering",  "waiting", "planned",
                                                     "committing", "begun",   "whole"};

}  // namespace

void AddGangMetrics(std::span<const GangView> gangs, MetricsText& text) {
  const auto in = [gangs](std::string_view state) {
    return std::ranges::count(gangs, state, &GangView::state);
  };
  text.Gauge("berth_gangs", "Gangs (pods that start together or not at all), by state");
  for (const std::string_view state : kStates) text.Sample(in(state), {{"state", state}});
  text.Gauge("berth_gang_oldest_seconds", "Age of the oldest gang in this state");
  for (const std::string_view state : kStates) {
    Duration oldest{};
    for (const GangView& gang : gangs) {
      if (gang.state == state) oldest = std::max(oldest, gang.age);
    }
    text.Sample(std::chrono::duration<double>(oldest).count(), {{"state", state}});
  }
  text.Gauge("berth_gangs_partial", "Gangs that run with fewer pods than their minimum");
  text.Sample(in("begun"));
  text.Gauge("berth_binds_held", "Binds that wait for other pods of their gang");
  std::int64_t held = 0;
  for (const GangView& gang : gangs) held += gang.held;
  text.Sample(held);
}

}  // namespace berth
