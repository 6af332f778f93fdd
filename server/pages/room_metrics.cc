// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "server/pages/metrics_parts.h"

namespace berth {

void AddRoomMetrics(std::span<const RoomWithin> within, MetricsText& text) {
  text.Gauge(
      "berth_room_within_moves",
      "Nodes with so many GPUs that so many moves of pods would make idle, found each minute");
  for (const RoomWithin& kind : within) {
    for (std::size_t i = 0; i < kMovesWithin.size(); ++i) {
      text.Sample(kind.nodes[i], {{"model", kind.model},
                                  {"gpus", std::to_string(kind.gpus)},
                                  {"moves", std::to_string(kMovesWithin[i])}});
    }
  }
}

void AddRoomMakerMetrics(const RoomMaker::Stats& stats, MetricsText& text) {
  text.Counter("berth_room_plans_total",
               "Plans of moves that Berth carried out (makeRoom), by result")
      .Sample(stats.done, {{"result", "done"}})
      .Sample(stats.given_up, {{"result", "given_up"}});
  text.Counter("berth_room_moves_total", "Pods that Berth evicted to make room, by result")
      .Sample(stats.evicted, {{"result", "evicted"}})
      .Sample(stats.blocked, {{"result", "blocked"}})
      .Sample(stats.failed, {{"result", "failed"}});
  text.Gauge("berth_room_moves_left", "Moves to go of the plan that Berth carries out now")
      .Sample(stats.left);
  text.Gauge("berth_room_idle_given_up",
             "1 while Berth keeps no idle nodes because nodes that it kept idle vanished")
      .Sample(stats.gave_idle_up ? 1 : 0);
}

}  // namespace berth
