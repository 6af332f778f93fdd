// SPDX-License-Identifier: Apache-2.0
//
// What the verbs do for pods that start together with others (gang_table.h).
#include <optional>
#include <string>
#include <utility>

#include "scoring/victims.h"
#include "server/extender/extender.h"

namespace berth {
namespace {

// kube-scheduler asks about gangs of its own kind when it has seen their PodGroup and all of their
// pods, and after a "no" not again for seconds, whatever happens: what is missing then has not been
// heard of here yet.
bool IsAheadOfUs(const PodRequest& pod, Reason reason) {
  return pod.gang.comes_at_once() &&
         (reason == Reason::kGangIncomplete || reason == Reason::kGangUnknown);
}

}  // namespace

std::optional<FilterAnswer> Extender::FilterMember(const Moment& now, const PodRequest& pod,
                                                   std::span<const NodeIndex> candidates) {
  const auto& snapshot = now.snapshot;
  const auto& policy = now.policy;
  if (parts_.waiting != nullptr) parts_.waiting->Note(pod);
  GangActions actions;
  GangVerdict verdict =
      parts_.gangs->Filter(*policy->engine, snapshot, pod, candidates, parts_.clock.Now(), actions);
  Do(std::move(actions));
  if (verdict.reason == Reason::kGangNoRoom && pod.gang.comes_at_once() && pod.may_preempt) {
    const auto [budgets, limits] = LimitsNow();
    verdict = parts_.gangs->FilterWithoutOthers(*policy->engine, snapshot, pod, candidates, limits,
                                                parts_.clock.Now());
  }
  if (verdict.kind == GangVerdict::Kind::kAlone) return std::nullopt;
  if (verdict.kind == GangVerdict::Kind::kThere) return OnlyOn(verdict.node, pod, candidates);
  if (verdict.kind == GangVerdict::Kind::kAllocates) {
    FilterAnswer answer = OnlyOn(verdict.node, pod, candidates);
    answer.allocate = std::move(verdict.allocate);
    answer.goes_on = verdict.goes_on;
    return answer;
  }
  FilterAnswer answer{.unknown = verdict.reason};
  answer.reasons.assign(candidates.size(), verdict.reason);
  if (verdict.reason == Reason::kGangNoRoom && pod.may_preempt && pod.claims.empty()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Node& node = snapshot->node(candidates[i]);
      if (node.lowest_priority() < pod.priority) answer.reasons[i] = Reason::kGpusBusy;
    }
  }
  answer.may_change = IsAheadOfUs(pod, verdict.reason);
  answer.gang_wakes = verdict.remembered && verdict.reason != Reason::kGangUnknown;
  answer.nowhere = verdict.text.empty() ? std::string(TextOf(verdict.reason)) : verdict.text;
  parts_.sink.Record({.verb = Verb::kFilter,
                      .pod = &pod.id,
                      .candidates = candidates.size(),
                      .first_reason = verdict.reason});
  return answer;
}

void Extender::LetPassWithoutOthers(const Snapshot& snapshot, const PodRequest& pod,
                                    std::span<const NodeIndex> candidates, FilterAnswer& answer) {
  if (!pod.gang.comes_at_once() || !pod.may_preempt) return;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Node& node = snapshot.node(candidates[i]);
    if (answer.reasons[i] != Reason::kGpusBusy || !PodsAreTakenAway(node, pod)) continue;
    if (!AnyEvictionsWillDo(node, pod)) continue;
    answer.reasons[i] = Reason::kFits;
    answer.fits = true;
  }
}

GangVerdict Extender::PreemptMember(const Moment& now, const PodRequest& pod,
                                    std::span<const NodeVictims> nodes,
                                    const EvictionLimits& limits) {
  std::vector<NodeIndex> candidates;
  for (const NodeVictims& asked : nodes) {
    const NodeIndex node = now.snapshot->names().Find(asked.node);
    if (node != kNoNode) candidates.push_back(node);
  }
  return parts_.gangs->Preempt(*now.policy->engine, now.snapshot, pod, candidates, limits,
                               parts_.clock.Now());
}

void Extender::Do(GangActions actions) {
  for (auto& [bind, bound] : actions.answers) binds_.Answer(bind, std::move(bound));
  for (const BindsUnderWay::Entry& bind : actions.binds) binds_.Release(bind);
  wakes_.Wake(actions.wakes);  // GangTable looks at its gangs all the time
  TakeUpGangs(actions);
  for (const GangNews& news : actions.news) parts_.sink.Record(news);
}

void Extender::Allocated(const GangId& gang, bool allocated) {
  GangActions actions;
  parts_.gangs->Allocated(gang, allocated, parts_.clock.Now(), actions);
  Do(std::move(actions));
}

void Extender::LookAtGangs() {
  if (parts_.gangs == nullptr) return;
  const Moment now = WithEarmarks({Current(), policy()}, EarmarkLine::Scope::kChanges);
  GangActions actions;
  parts_.gangs->Look(*now.policy->engine, parts_.clock.Now(), actions);
  Do(std::move(actions));
}

void Extender::TakeOverGangs(Duration patience) {
  if (parts_.gangs == nullptr) return;
  GangActions actions;
  parts_.gangs->TakeOver(*policy()->engine, parts_.clock.Now(), patience, actions);
  Do(std::move(actions));
}

void Extender::TakeStock() {
  TakeOverGangs(Duration());
  if (parts_.gangs == nullptr) return;
  const Instant until = parts_.clock.Now() + kLongestStock;
  std::size_t left = parts_.gangs->Views(parts_.clock.Now()).size() / gangs::kPlansOfALook + 1;
  for (; left > 0 && parts_.clock.Now() < until; --left) LookAtGangs();
}

void Extender::LearnOfGangs() {
  if (parts_.gangs == nullptr || parts_.history == nullptr) return;
  const auto namespace_name = parts_.gangs->Unsure(parts_.clock.Now());
  if (!namespace_name) return;
  const auto pasts = parts_.history->In(*namespace_name);
  if (pasts) parts_.gangs->Learn(*namespace_name, *pasts, parts_.clock.Now());
}

void Extender::LetGoOfGangs(const Error& why) {
  if (parts_.gangs == nullptr) return;
  GangActions actions;
  parts_.gangs->LetGo(why, actions);
  Do(std::move(actions));
}

}  // namespace berth
