// SPDX-License-Identifier: Apache-2.0
#include "server/planners/moves/held_nodes.h"

#include <set>

namespace berth {
namespace {

// Adds those that are new, and forgets the others.
void Follow(const std::set<std::string>& now, Instant instant,
            std::map<std::string, Instant>& since) {
  std::erase_if(since, [&now](const auto& entry) { return !now.contains(entry.first); });
  for (const std::string& name : now) since.try_emplace(name, instant);
}

}  // namespace

void HeldNodes::Look() {
  const Instant now = parts_.clock.Now();
  const Extender::Moment moment = parts_.extender.Now();
  std::set<std::string> kept = parts_.maker.idle();
  if (const auto rooms = parts_.rooms.Current()) {
    for (const auto& [node, room] : *rooms) kept.insert(node);
  }
  if (const KeptNodes* const nodes = moment.reservations.nodes()) {
    for (const auto& [node, one] : *nodes) kept.insert(node);
  }
  const Earmarks& earmarks = moment.reservations.earmarks();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    kept.insert(earmarks.snapshot()->node(on.node).spec().name);
  }
  const std::set<std::string> held = parts_.holder.Held();
  std::set<std::string> unneeded;
  for (const std::string& name : held) {
    if (!kept.contains(name)) unneeded.insert(name);
  }
  Follow(kept, now, kept_);
  Follow(unneeded, now, unneeded_);
  std::erase_if(asked_, [now](const auto& entry) { return now - entry.second >= kAgain; });
  std::size_t left = kMostAtOnce, holds = held.size();
  const auto ask = [&](const std::string& node, bool hold) {
    if (left == 0 || (hold && holds >= kMost) || !asked_.try_emplace(node, now).second) return;
    parts_.holder.Hold(node, hold);
    --left;
    holds += hold ? 1 : 0;
  };
  for (const auto& [node, since] : unneeded_) {
    if (now - since >= kLinger) ask(node, false);
  }
  for (const auto& [node, since] : kept_) {
    if (now - since >= kSteady && !held.contains(node)) ask(node, true);
  }
}

void HeldNodes::LetGo() {
  kept_.clear();
  unneeded_.clear();
  asked_.clear();
}

}  // namespace berth
