// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/kept_room.h"

#include <algorithm>
#include <cstdint>

#include "scoring/explain/first_line.h"
#include "scoring/explain/node_report.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::chrono::minutes InMinutes(Duration time) {
  return std::chrono::floor<std::chrono::minutes>(time);
}

// The pods that end by then and have to. Those with the fewest GPUs are the first to stay.
std::vector<const PodRecord*> HaveToEnd(const Node& node, const PodRequest& pod, WallTime then,
                                        const PodEnds& ends) {
  std::vector<const PodRecord*> gone;
  for (const auto& held : node.pods()) {
    const auto end = ends.Of(*held);
    if (end && *end <= then) gone.push_back(held.get());
  }
  const auto size = [](const PodRecord* held) {
    return std::pair(held->placement.grants.size(), held->pod.id.full_name());
  };
  std::ranges::sort(gone, {}, size);
  for (std::size_t i = 0; i < gone.size();) {
    const PodRecord* const stays = gone[i];
    const auto leaves = [&](const PodRecord& held) {
      return &held != stays && std::ranges::find(gone, &held) != gone.end();
    };
    if (Fits(node.Without(leaves), pod.shape)) {
      gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return gone;
}

KeptFor Of(const EarmarkOwner& owner) {
  const bool is_gang = !owner.gang.empty();
  return {.name = is_gang ? owner.gang.full_name() : owner.pod.full_name(),
          .is_gang = is_gang,
          .gpus = owner.gpus};
}

}  // namespace

std::string AboutText(std::chrono::minutes time) {
  const auto minutes = std::max<std::int64_t>(time.count(), 1);
  return time < kHoursFrom ? std::to_string(minutes) + " min"
                           : std::to_string((minutes + 30) / 60) + " h";
}

std::string GpuHoursText(Duration time) {
  const auto tenths = (std::chrono::floor<std::chrono::minutes>(time).count() + 3) / 6;
  if (tenths == 0) return "";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GPU-hours";
}

std::optional<Reservation> ReservationOf(const Earmarks& earmarks, const PodRequest& pod) {
  const PodEnds& ends = earmarks.ends();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    if (on.then == nullptr || !on.from || !IsOwnedBy(on.awaiting, pod)) continue;
    const Node& node = earmarks.snapshot()->node(on.node);
    Reservation found{.node = node.spec().name,
                      .in = std::chrono::ceil<std::chrono::minutes>(*on.from - ends.now()),
                      .idle = on.idle};
    for (const PodRecord* const held : HaveToEnd(node, pod, *on.from, ends)) {
      ++found.ends;
      if (ends.IsLearned(*held)) ++found.learned;
      const auto overrun = ends.OverrunOf(*held);
      if (!overrun || (!found.late.empty() && overrun->past <= found.overrun.past)) continue;
      found.late = held->pod.id.full_name();
      found.overrun = *overrun;
    }
    return found;
  }
  return std::nullopt;
}

std::string TextOf(const Reservation& reservation) {
  const bool is_late = !reservation.late.empty() && reservation.in <= std::chrono::minutes(1);
  const bool one = reservation.ends == 1;
  std::string late = " is " + AboutText(InMinutes(reservation.overrun.past)) + " past its ";
  late += reservation.overrun.word == Duration::zero()
              ? "end"
              : "word of " + AboutText(InMinutes(reservation.overrun.word));
  if (is_late && one) {
    return "reserved: starts when " + reservation.late + " ends, which" + late;
  }
  std::string text = "reserved: starts " +
                     (is_late ? "" : "in about " + AboutText(reservation.in) + " ") + "when " +
                     CountText(reservation.ends, "pod") + " on " +
                     ShortName(reservation.node, 2 * kShortName) + " end" + (one ? "s" : "");
  if (!reservation.late.empty()) text += "; " + reservation.late + late;
  return text;
}

std::string ProvisoOf(const Reservation& reservation) {
  if (reservation.learned == 0) return "";
  return reservation.ends == 1 ? "if it runs as long as pods like it did"
                               : "if they run as long as pods like them did";
}

std::string CostOf(const Reservation& reservation) {
  const std::string idle = GpuHoursText(reservation.idle);
  return idle.empty() ? "" : "up to " + idle + " stand idle for it until then";
}

OwnRooms OwnRoomsIn(const Earmarks& earmarks) {
  OwnRooms rooms;
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    const std::string& node = earmarks.snapshot()->node(on.node).spec().name;
    for (const EarmarkOwner& owner : on.owners) {
      if (owner.gang.empty()) rooms[owner.pod.uid] = {node, false};
    }
    if (on.then != nullptr && on.awaiting.gang.empty()) {
      rooms.try_emplace(on.awaiting.pod.uid, OwnRoom{node, true});
    }
  }
  return rooms;
}

std::vector<KeptFor> KeptOn(const Reservations& reservations, const Snapshot& snapshot,
                            NodeIndex node) {
  std::vector<KeptFor> kept;
  if (const KeptNodes* const nodes = reservations.nodes()) {
    const auto room = nodes->find(snapshot.names().name(node));
    if (room != nodes->end()) {
      kept.push_back(Of(room->second.owner));
      kept.back().awaits = true;
    }
  }
  const Earmarks& earmarks = reservations.earmarks();
  const Earmarks::OnNode* const on = earmarks.On(snapshot, node);
  if (on == nullptr) return kept;
  for (const EarmarkOwner& owner : on->owners) {
    KeptFor one = Of(owner);
    const auto same = std::ranges::find_if(kept, [&one](const KeptFor& other) {
      return other.name == one.name && other.is_gang == one.is_gang;
    });
    if (same == kept.end()) {
      kept.push_back(std::move(one));
    } else {
      same->gpus += one.gpus;  // another member of the gang
    }
  }
  if (on->then != nullptr) {
    KeptFor one = Of(on->awaiting);
    one.awaits = true;
    if (on->from) {
      one.in = std::chrono::ceil<std::chrono::minutes>(*on->from - earmarks.ends().now());
    }
    one.idle = on->idle;
    kept.push_back(std::move(one));
  }
  return kept;
}

std::string TextOf(const KeptFor& kept) {
  const std::string who = (kept.is_gang ? "gang " : "") + kept.name;
  const std::string idle = CountText(kept.gpus, "idle GPU");
  if (!kept.awaits) return idle + (kept.gpus == 1 ? " is" : " are") + " kept for " + who;
  const std::string now = kept.gpus > 0 ? " (" + idle + " now)" : "";
  if (kept.in) {
    const std::string hours = GpuHoursText(kept.idle);
    return "reserved for " + who + ", which can start in about " + AboutText(*kept.in) + now +
           (hours.empty() ? "" : "; up to " + hours + " stand idle until then");
  }
  return "reserved for " + who + ", which waits for pods here to end" + now;
}

}  // namespace berth
