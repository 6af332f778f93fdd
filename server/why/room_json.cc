// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_json.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "cluster/state/device_disputes.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"
#include "scoring/victims.h"
#include "server/why/explain_json.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

constexpr int kRoomVersion = 1;

// "n1 with GPU 0, GPU 3".
std::string With(const Placement& placement) {
  if (placement.places > 0) {
    return placement.node + " with " + CountText(placement.places, "GPU replica");
  }
  if (placement.grants.empty() && placement.mig.empty()) return placement.node;
  return placement.node + " with " + berth::DevicesText(placement);
}

// "3 h": of work that is lost.
std::string LostText(std::chrono::minutes lost) {
  const std::int64_t minutes = lost.count();
  if (lost >= kMostLost) return "30 days or more";
  if (minutes < 120) return std::to_string(minutes) + " min";
  if (minutes < std::int64_t{48} * 60) return std::to_string(minutes / 60) + " h";
  return CountText(minutes / (24 * 60), "day");
}

std::string GpuHours(std::int64_t cost) {
  const std::int64_t tenths = (cost + 3000) / 6000;  // thousandths of GPU-minutes
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

class RoomTeller {
 public:
  explicit RoomTeller(const RoomReport& report) : report_(report) {}

  [[nodiscard]] std::string Sentence() const {
    std::int64_t fit = 0, moved = 0, moves = 0, none = 0;
    for (const RoomUnit& unit : report_.told.units) {
      if (!unit.plan.found) {
        ++none;
      } else if (unit.plan.moves.empty()) {
        ++fit;
      } else {
        ++moved;
        moves += std::ssize(unit.plan.moves);
      }
    }
    if (report_.told.units.empty() && report_.told.beyond == 0) return "no pod waits";
    std::string text = CountText(moves, "move") + (moves == 1 ? " makes" : " make") + " room for " +
                       std::to_string(moved) + " of " +
                       CountText(std::ssize(report_.told.units), "goal");
    if (fit > 0) text += "; " + std::to_string(fit) + (fit == 1 ? " needs" : " need") + " no move";
    if (none > 0) text += "; for " + std::to_string(none) + " no plan was found";
    if (report_.told.beyond > 0) {
      text += "; " + std::to_string(report_.told.beyond) + " more were not looked at";
    }
    return text;
  }

  [[nodiscard]] std::string TextOfUnit(const RoomUnit& unit) const {
    const RoomPlan& plan = unit.plan;
    const std::string what = NameOfUnit(unit);
    if (!unit.problem.empty()) return "No moves help " + what + ": " + unit.problem + "\n";
    if (!plan.found) return NoPlanText(unit);
    std::string text;
    if (plan.moves.empty()) {
      text = what + (unit.name.empty() ? " need no move: their GPUs are idle\n"
                                       : " fits without a move\n");
    } else {
      text = "Moving " + CountText(std::ssize(plan.moves), "pod") +
             (unit.name.empty() ? " empties " + what : " lets " + what + " in") + ":\n";
    }
    for (std::size_t i = 0; i < plan.moves.size(); ++i) text += MoveText(plan, i);
    text += PlacesText(unit);
    return plan.moves.empty() ? text : text + BoundText(plan);
  }

  [[nodiscard]] Json JsonOfUnit(const RoomUnit& unit) const {
    const RoomPlan& plan = unit.plan;
    Json json = {{"for", unit.name}, {"gang", unit.is_gang}, {"found", plan.found}};
    if (!unit.problem.empty()) {
      json["problem"] = unit.problem;
      return json;
    }
    json["optimal"] = plan.optimal;
    json["impossible"] = plan.least_cost.impossible || (!plan.found && plan.optimal);
    json["cost_gpu_minutes"] = MinutesOf(plan.cost);
    json["least_cost_gpu_minutes"] = MinutesOf(plan.least_cost.price);
    json["least_moves"] = plan.least_moves.price;
    json["bound"] = HowText(plan.least_moves.by);
    json["moves"] = ListOf(plan.moves, [&](const PodMove& move) { return MoveJson(move); });
    json["places"] = ListOf(plan.places, [&](const RoomPlan::Place& place) -> Json {
      return {{"pod", PodOf(unit, place).id.full_name()},
              {"node", place.placement.node},
              {"devices", DevicesJson(place.placement)}};
    });
    json["idle_nodes"] = ListOf(plan.idle, [&](NodeIndex node) { return NameOf(node); });
    json["staying"] = ListOf(plan.staying, [](const auto& at) -> Json {
      return {{"why", std::string(berth::TextOf(at.first))}, {"pods", at.second}};
    });
    return json;
  }

 private:
  static double MinutesOf(std::int64_t cost) { return static_cast<double>(cost) / 1000; }

  [[nodiscard]] const std::string& NameOf(NodeIndex node) const {
    return report_.snapshot.node(node).spec().name;
  }
  [[nodiscard]] const PodRequest& PodOf(const RoomUnit& unit, const RoomPlan::Place& place) const {
    return report_.pods[unit.pods[place.pod]];
  }

  [[nodiscard]] std::string NameOfUnit(const RoomUnit& unit) const {
    if (!unit.name.empty()) return (unit.is_gang ? "gang " : "") + unit.name;
    const PlanRoom& room = *report_.request.room;
    return CountText(room.idle_nodes, "node") + (room.model.empty() ? "" : " of " + room.model);
  }

  [[nodiscard]] std::string MoveText(const RoomPlan& plan, std::size_t i) const {
    const PodMove& move = plan.moves[i];
    const PodRequest& pod = move.pod->pod;
    std::string text = "  " + std::to_string(i + 1) + ". " + pod.id.full_name() + " from " +
                       With(move.pod->placement) + " to " + With(move.place) + " (" +
                       LostText(LostByMove(*move.pod, report_.told.now)) + " of work)";
    if (move.waits_for != kNoMove) {
      text += "; its new place is free only after move " + std::to_string(move.waits_for + 1);
      text += move.spare == kNoNode ? ", and no node has room for it until then"
                                    : ", until then it fits on " + NameOf(move.spare);
    }
    const std::vector<std::string> not_judged = NotJudgedOf(pod);
    if (!not_judged.empty()) text += "; not judged: " + Join(not_judged, ", ");
    return text + "\n";
  }

  [[nodiscard]] std::string PlacesText(const RoomUnit& unit) const {
    constexpr std::size_t kTold = 8;
    const RoomPlan& plan = unit.plan;
    std::string text;
    for (std::size_t i = 0; i < std::min(kTold, plan.places.size()); ++i) {
      text += "  then " + PodOf(unit, plan.places[i]).id.full_name() + " fits on " +
              With(plan.places[i].placement) + "\n";
    }
    if (plan.places.size() > kTold) {
      text +=
          "  and " + CountText(std::ssize(plan.places) - std::int64_t{kTold}, "more pod") + "\n";
    }
    std::vector<std::string> idle;
    for (const NodeIndex node : plan.idle) idle.push_back(NameOf(node));
    if (!idle.empty()) text += "  then all GPUs are idle on " + Join(idle, ", ") + "\n";
    return text;
  }

  static std::string HowText(BoundBy by) {
    constexpr std::array<const char*, 6> kTexts = {
        "",
        "the fewest pods that have to leave one node, over all nodes",
        "the cheapest places of all nodes together",
        "the pods on the nodes that are the cheapest to empty",
        "fewer GPUs are free than are asked for, and moves free none",
        "no node would do, even if every pod that may be moved were gone"};
    return kTexts[static_cast<std::size_t>(by)];
  }

  static std::string BoundText(const RoomPlan& plan) {
    std::string text = "  ";
    if (plan.least_moves.price > 0) {
      text += "At least " + CountText(plan.least_moves.price, "move") +
              (plan.least_moves.price == 1 ? " is" : " are") + " needed";
    }
    text += (text.size() > 2 ? "; this plan costs " : "This plan costs ") + GpuHours(plan.cost) +
            " GPU-hours";
    return text + (plan.optimal ? ", and none costs less\n"
                                : ", and none less than " + GpuHours(plan.least_cost.price) + "\n");
  }

  [[nodiscard]] std::string NoPlanText(const RoomUnit& unit) const {
    const RoomPlan& plan = unit.plan;
    std::string text = "No moves make room for " + NameOfUnit(unit);
    if (plan.least_cost.impossible) {
      text += ": " + HowText(plan.least_cost.by);
    } else if (plan.optimal) {
      text += ": who would have to leave has no place elsewhere";
    } else {
      text = "No plan was found for " + NameOfUnit(unit) + "; there may be one";
      if (plan.least_moves.price > 0) {
        text += ", of at least " + CountText(plan.least_moves.price, "move");
      }
    }
    text += "\n";
    for (const auto& [why, pods] : plan.staying) {
      text += "  " + CountText(pods, "GPU pod") + (pods == 1 ? " stays: " : " stay: ") +
              std::string(berth::TextOf(why)) + "\n";
    }
    return text;
  }

  [[nodiscard]] Json MoveJson(const PodMove& move) const {
    Json json = {{"pod", move.pod->pod.id.full_name()},
                 {"uid", move.pod->pod.id.uid},
                 {"from", NameOf(move.from)},
                 {"frees", DevicesJson(move.pod->placement)},
                 {"to", NameOf(move.to)},
                 {"devices", DevicesJson(move.place)},
                 {"cost_gpu_minutes", MinutesOf(move.cost)},
                 {"minutes_lost", LostByMove(*move.pod, report_.told.now).count()}};
    if (move.waits_for != kNoMove) {
      json["waits_for"] = move.waits_for + 1;
      json["spare_node"] = move.spare == kNoNode ? "" : NameOf(move.spare);
    }
    const std::vector<std::string> not_judged = NotJudgedOf(move.pod->pod);
    if (!not_judged.empty()) json["not_judged"] = not_judged;
    return json;
  }

  const RoomReport& report_;
};

}  // namespace

std::string EncodeRoom(const RoomReport& report) {
  const RoomTeller teller(report);
  Json json = {
      {"version", kRoomVersion}, {"sentence", teller.Sentence()}, {"beyond", report.told.beyond}};
  json["goals"] =
      ListOf(report.told.units, [&](const RoomUnit& unit) { return teller.JsonOfUnit(unit); });
  json["nodes"] = EditedNodesJson(report.nodes);
  json["left_out"] = report.request.left_out;
  return JsonText(json) + "\n";
}

std::string TextOf(const RoomReport& report) {
  const RoomTeller teller(report);
  std::string text = TextOf(report.nodes);
  for (const std::string& what : report.request.left_out) text += "Left out: " + what + "\n";
  for (const RoomUnit& unit : report.told.units) text += teller.TextOfUnit(unit);
  return text + teller.Sentence() + "\n";
}

}  // namespace berth::wire
