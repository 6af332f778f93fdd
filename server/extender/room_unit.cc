// SPDX-License-Identifier: Apache-2.0
#include "server/extender/room_unit.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "scoring/explain/node_report.h"

namespace berth {

namespace {

bool IsPlainWord(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '/' ||
           c == '_';
  });
}

}  // namespace

std::vector<PodRequest> RoomUnitOf(const Extender& extender, const WaitingPods& waiting,
                                   const PodGroups* groups, const Extender::Moment& now,
                                   const WaitingPod& pod) {
  std::vector<WaitingPod> listed = {pod};
  if (extender.StartsWithGang(*now.policy, *pod.pod)) {
    listed = waiting.WaitingMembers(pod.pod->gang.id, pod.pod->scheduler);
  }
  return LineOf(std::move(listed), *now.snapshot, groups, kMostUnitPods + 1).pods;
}

const RoomUnit* FindUnit(const RoomUnits& units, const PodRequest& pod) {
  // Of a gang that has begun, each pod is a unit of its own.
  const std::string own = pod.id.full_name();
  for (const RoomUnit& unit : units.units) {
    if (!unit.is_gang && unit.name != own) continue;
    return unit.plan.found && !unit.plan.moves.empty() ? &unit : nullptr;
  }
  return nullptr;
}

std::string RoomSentence(const std::string& name, bool is_gang, std::int64_t moves) {
  std::string text = CountText(moves, "move") + " would let " + (is_gang ? "its gang" : "it") +
                     " in: berth plan --make-room";
  return IsPlainWord(name) ? text + " --for " + name : text;
}

WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most) {
  WaitingLine line;
  line.gated = static_cast<std::size_t>(std::erase_if(all, [](const auto& p) { return p.gated; }));
  std::unordered_set<std::string_view> placed;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& record : snapshot.node(i).pods()) placed.insert(record->pod.id.uid);
  }
  std::erase_if(all, [&placed](const auto& p) { return placed.contains(p.pod->id.uid); });
  std::ranges::stable_sort(all, ComesBefore, &WaitingPod::place);  // they are sorted by name
  line.beyond = all.size() - std::min(all.size(), most);
  all.resize(all.size() - line.beyond);
  for (const WaitingPod& one : all) {
    PodRequest& pod = line.pods.emplace_back(*one.pod);
    if (groups != nullptr && !pod.gang.empty()) groups->Update(pod.gang);
  }
  return line;
}

}  // namespace berth
