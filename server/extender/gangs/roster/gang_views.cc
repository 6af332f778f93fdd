// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/roster/gang_roster.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {
namespace {

constexpr Duration kBringsWithin = std::chrono::seconds(5);  // what a busy kube-scheduler may take

std::string NamesOf(const std::map<std::string, std::string, std::less<>>& by_uid) {
  std::vector<std::string> names;
  for (const auto& [uid, name] : by_uid) names.push_back(name);
  return Listed(names);
}

std::string Seconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}

// "needs room for 4 pods with 8 GPUs each, has room for 1 in leaf l7".
std::string ShortageOf(const GangWait& wait, std::int64_t missing) {
  return "needs room for " + CountText(missing, "pod") +
         (wait.shortage_ask.empty()
              ? missing == 1 ? "" : " together"
              : " with " + wait.shortage_ask + (missing == 1 ? "" : " each")) +
         // It may have it, and not where they may go.
         (wait.shortage->fits < missing ? ", has room for " + std::to_string(wait.shortage->fits)
                                        : "") +
         (wait.shortage_domain.empty() ? "" : " in " + wait.shortage_domain) +
         (wait.shortage->searched ? "" : " (search incomplete)");
}

// "kube-scheduler asked about m0 3 times and did not bind it to n0"; "" = it binds all.
std::string NotBoundText(const GangWait& wait, Instant now) {
  const GangWait::Out* last = nullptr;
  for (const GangWait::Out& out : wait.out) {
    if (now < out.until && (last == nullptr || last->until <= out.until)) last = &out;
  }
  return last == nullptr ? "" : last->TextOf(last->pod->id.name);
}

// Of the plan's members, those that kube-scheduler has not brought for some time.
std::map<std::string, std::string, std::less<>> NotBrought(const GangPlanned& plan, Instant now) {
  std::map<std::string, std::string, std::less<>> names;
  if (plan.held() == 0 || now - plan.touched < kBringsWithin) return names;
  for (const auto& [uid, member] : plan.members) {
    if (member.needs_bind() && member.asks == 0) names.emplace(uid, member.pod->id.name);
  }
  return names;
}

std::string WhyItWaits(const GangUnit& unit, const GangView& view, Instant now) {
  const GangWait& wait = unit.wait;
  const std::int64_t members = view.placed + view.waiting;
  if (unit.roll.is_remnant(now)) return "";  // each of its pods goes by itself
  if (unit.roll.gathers) {
    const std::string there =
        std::to_string(members) + " of " + CountText(view.minimum, "pod") + " exist";
    const std::string_view cure = CureOf(unit.roll.says.one_by_one);
    if (!cure.empty()) return there + "; " + std::string(cure);
    return there + unit.roll.lacks;
  }
  if (!wait.objection.empty()) return wait.objection;
  if (!unit.roll.wants_devices) {
    return "its pods ask for no GPU, and kube-scheduler places each of them by itself";
  }
  if (!unit.clearing.nominated.empty()) return "lower-priority pods are being evicted for it";
  if (const auto missing = NotBrought(unit.plan, now); !missing.empty()) {
    return wait.said.empty() ? "kube-scheduler has not yet retried " + NamesOf(missing)
                             : "kube-scheduler finds no node for " + wait.said;
  }
  const std::string out = NotBoundText(wait, now);
  if (!unit.plan.members.empty()) return out;
  if (!wait.absent.empty() && now < wait.not_before) {
    const std::string who = wait.said.empty() ? "did not retry " + NamesOf(wait.absent)
                                              : "found no node for " + wait.said + ",";
    return "kube-scheduler " + who +
           " while their nodes were reserved; Berth reserves again when it does, or in " +
           Seconds(wait.not_before - now);
  }
  std::string lacks_room = now < wait.not_before ? "Berth retries it soon" : "";
  // A part that has no domain says it all.
  if (wait.shortage && !wait.shortage->part)
    lacks_room = ShortageOf(wait, view.minimum - view.placed);
  std::vector<std::string> facts = {lacks_room, wait.lack.text, out};
  // The cause before the number of places, which says less.
  if (!wait.lack.text.empty()) std::swap(facts[0], facts[1]);
  std::erase(facts, "");
  const std::string why = Join(facts, "; ");
  if (why.empty() && wait.asked.empty()) return "kube-scheduler has not asked Berth about its pods";
  return why;
}

}  // namespace

GangView ViewOf(const GangUnit& unit, Instant now) {
  GangView view{.id = unit.roll.says.id,
                .state = "gathering",
                .minimum = unit.roll.needs,
                .total = unit.roll.says.total,
                .placed = unit.roll.placed,
                .waiting = unit.roll.waiting,
                .planned = std::ssize(unit.plan.members) + std::ssize(unit.clearing.kept),
                .held = static_cast<std::int64_t>(unit.plan.held()),
                .age = now - unit.roll.since,
                .why = {},
                .lacks = unit.wait.lack.member,
                .never = unit.wait.lack.for_good};
  if (!unit.roll.says.minimum) {
    view.why = unit.roll.says.controller.empty() ? "its PodGroup was not found"
                                                 : gangs::UnseenController(unit.roll.says);
  } else if ((view.placed >= view.minimum && !unit.roll.gathers) ||
             (view.placed > 0 && view.waiting == 0)) {
    view.state = "whole";  // or what is left of it: its pods end one by one
  } else if (unit.plan.phase == GangPlanned::Phase::kCommitting) {
    view.state = "committing";
  } else if (unit.roll.began && view.placed > 0) {
    view.state = "begun";
  } else if (!unit.plan.members.empty()) {
    view.state = "planned";
  } else if (!unit.roll.gathers) {
    view.state = unit.roll.wants_devices ? "waiting" : "alone";
  }
  if (view.why.empty() && view.state != "whole") view.why = WhyItWaits(unit, view, now);
  if (!unit.roll.contradicts.empty()) {
    view.why += (view.why.empty() ? "" : "; ") + unit.roll.contradicts;
  }
  return view;
}

std::optional<GangView> Shown(const GangUnit& unit, Instant now) {
  const MutexLock lock(unit.mutex);
  if (unit.roll.members() == 0 && unit.is_idle()) return std::nullopt;
  return ViewOf(unit, now);
}

}  // namespace berth
