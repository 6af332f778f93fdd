// SPDX-License-Identifier: Apache-2.0
#include "server/extender/extender.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/cleanup.h"
#include "base/random.h"
#include "scoring/admission.h"
#include "scoring/groups/group_rails.h"
#include "scoring/link_report.h"
#include "scoring/victims.h"

namespace berth {
namespace {

// What the shape does not say: whether the pod may go there at all, and whether evictions could
// make room for it.
void Refine(const Snapshot& snapshot, const PodRequest& pod, std::span<const NodeIndex> candidates,
            std::span<Reason> reasons) {
  const bool admission_matters = AdmissionMatters(snapshot, pod);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] == Reason::kFits) {
      if (admission_matters) reasons[i] = Admits(snapshot.node(candidates[i]).spec(), pod);
    } else if (VerdictOf(reasons[i]) == Verdict::kUnschedulable) {
      reasons[i] = AfterEvictions(snapshot.node(candidates[i]), pod, reasons[i]);
    }
  }
}

Status WaitedTooLong(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return Fail(Errc::kDeadline, "bind waited for " + std::to_string(seconds) +
                                   " s: whoever asked for it gives it up by now");
}

}  // namespace

void Extender::Use(Policy policy) {
  const MutexLock lock(policy_mutex_);
  std::swap(policy_, policy);  // the old engine is freed after the lock
}

Extender::Policy Extender::policy() const {
  const MutexLock lock(policy_mutex_);
  return policy_;
}

void Extender::PassBy(const std::shared_ptr<const Snapshot>& snapshot, const PodRequest& pod) {
  if (pending_.Remember(pod)) Arrived(*policy().engine, snapshot, pod.shape);
  parts_.sink.Record({.verb = Verb::kFilter, .pod = &pod.id});
}

std::vector<Reason> Extender::Judge(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                                    const PodRequest& pod,
                                    std::span<const NodeIndex> candidates) const {
  if (LeavesToScheduler(pod)) return std::vector<Reason>(candidates.size(), Reason::kFits);
  std::vector<Reason> reasons = engine.Filter(snapshot, pod.shape, candidates);
  Refine(*snapshot, pod, candidates, reasons);
  if (parts_.domains != nullptr && pod.domain.required) {
    const Group group = GroupOf(snapshot, pod);
    RequireDomain(*snapshot, *group.tree, pod, group.members, candidates, reasons);
  }
  return reasons;
}

bool Extender::WouldFit(const std::shared_ptr<const Snapshot>& snapshot,
                        const PodRequest& pod) const {
  if (!pod.refusal.empty()) return false;
  std::vector<NodeIndex> all(snapshot->size());
  std::iota(all.begin(), all.end(), NodeIndex{0});
  const std::vector<Reason> reasons = Judge(*policy().engine, snapshot, pod, all);
  return std::ranges::find(reasons, Reason::kFits) != reasons.end();
}

std::vector<Reason> Extender::Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> candidates) {
  const Policy policy = this->policy();
  std::vector<Reason> reasons;
  bool is_new = false;
  if (!pod.refusal.empty()) {
    pending_.Forget(pod.id.uid);  // what it asked for before no longer holds
    reasons.assign(candidates.size(), Reason::kPodRefused);
  } else {
    is_new = pending_.Remember(pod);
    if (is_new) Arrived(*policy.engine, snapshot, pod.shape);
    reasons = Judge(*policy.engine, snapshot, pod, candidates);
  }
  const auto fitting = static_cast<std::size_t>(std::ranges::count(reasons, Reason::kFits));
  const auto first = std::ranges::find_if(reasons, [](Reason r) { return r != Reason::kFits; });
  std::string shortage;
  if (first != reasons.end() && IsAboutLinks(*first)) {
    const auto position = static_cast<std::size_t>(first - reasons.begin());
    shortage = LinkShortage(snapshot->node(candidates[position]), pod.shape);
  }
  parts_.sink.Record({.verb = Verb::kFilter,
                      .pod = &pod.id,
                      .candidates = candidates.size(),
                      .fitting = fitting,
                      .first_reason = first == reasons.end() ? Reason::kFits : *first,
                      .shortage = shortage});
  const bool is_worth_it = is_new && pod.shape.wants_gpu();
  Shortlist(*policy.engine, snapshot, pod, candidates, is_worth_it ? policy.nodes_to_score : 0,
            reasons);
  return reasons;
}

void Extender::Shortlist(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                         const PodRequest& pod, std::span<const NodeIndex> candidates,
                         std::size_t most, std::span<Reason> reasons) {
  std::vector<NodeIndex> fitting;
  std::vector<std::size_t> positions;  // theirs
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] != Reason::kFits) continue;
    fitting.push_back(candidates[i]);
    positions.push_back(i);
  }
  if (fitting.empty()) return;
  const std::vector<int> pull = Pull(snapshot, pod, fitting);
  recent_.Remember(snapshot, pod.shape, fitting, pull);
  if (most == 0 || fitting.size() <= most) return;
  const auto priorities = engine.Prioritize(snapshot, pod.shape, fitting, pull);
  // Among equals the first by name, whatever the order of the question: one that turns from pod to
  // pod would spread pods over nodes that are alike.
  std::vector<std::size_t> order(fitting.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto cut = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(order, cut, [&](std::size_t a, std::size_t b) {
    return priorities[a] != priorities[b] ? priorities[a] > priorities[b] : fitting[a] < fitting[b];
  });
  for (; cut != order.end(); ++cut) reasons[positions[*cut]] = Reason::kBetterElsewhere;
}

Extender::Group Extender::GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                                  const PodRequest& pod) const {
  GroupMembers members;
  if (!pod.gang.empty()) members = MembersOn(*snapshot, pod, parts_.state.GangNodes(pod.gang));
  return {parts_.domains->Of(snapshot), std::move(members)};
}

std::vector<int> Extender::Pull(const std::shared_ptr<const Snapshot>& snapshot,
                                const PodRequest& pod,
                                std::span<const NodeIndex> candidates) const {
  if (parts_.domains == nullptr || pod.gang.empty()) return {};
  const Group group = GroupOf(snapshot, pod);
  return PullOf(*snapshot, *group.tree, pod, group.members, candidates);
}

Reason Extender::DomainAllows(const PodRequest& pod, const std::string& node) const {
  if (parts_.domains == nullptr || !pod.domain.required) return Reason::kFits;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode) return Reason::kNodeUnknown;
  const Group group = GroupOf(snapshot, pod);
  return MayJoin(*group.tree, pod, group.members, index);
}

void Extender::Arrived(std::span<const std::shared_ptr<const PodRequest>> pods) {
  if (parts_.mix == nullptr) return;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  for (const auto& pod : pods) {
    if (pod->refusal.empty()) parts_.mix->Observe(WithCompute(pod->shape, *snapshot));
  }
  policy().engine->Follow(snapshot);
}

void Extender::Arrived(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                       const RequestShape& shape) {
  if (parts_.mix == nullptr || parts_.watches_arrivals) return;
  parts_.mix->Observe(WithCompute(shape, *snapshot));
  engine.Follow(snapshot);
}

std::vector<std::uint8_t> Extender::Prioritize(const std::shared_ptr<const Snapshot>& snapshot,
                                               const PodRequest& pod,
                                               std::span<const NodeIndex> candidates) {
  parts_.sink.Record({.verb = Verb::kPrioritize, .pod = &pod.id, .candidates = candidates.size()});
  const std::vector<int> pull = Pull(snapshot, pod, candidates);
  return policy().engine->Prioritize(snapshot, pod.shape, candidates, pull);
}

std::vector<NodeVictims> Extender::Preempt(const std::shared_ptr<const Snapshot>& snapshot,
                                           const PodRequest& pod,
                                           std::span<const NodeVictims> nodes) {
  if (LeavesToScheduler(pod)) {
    parts_.sink.Record({.verb = Verb::kPreempt,
                        .pod = &pod.id,
                        .candidates = nodes.size(),
                        .fitting = nodes.size()});
    return {nodes.begin(), nodes.end()};
  }
  static const DisruptionBudgets kNoBudgets;
  const auto budgets = (parts_.budgets == nullptr ? kNoBudgets : *parts_.budgets).Current();
  const EvictionLimits limits{
      *budgets, [this](std::string_view gang) { return parts_.state.GangSize(gang); }};
  Group group;
  if (parts_.domains != nullptr && pod.domain.required) group = GroupOf(snapshot, pod);
  std::vector<NodeVictims> kept;
  std::vector<bool> seen(snapshot->size());
  const bool in_vain = !pod.refusal.empty() || !pod.may_preempt ||
                       evictions_.AwaitedElsewhere(pod.id.uid, *snapshot, nodes);
  for (const NodeVictims& asked : nodes) {
    if (in_vain) break;
    const NodeIndex index = snapshot->names().Find(asked.node);
    if (index == kNoNode || seen[index]) continue;
    seen[index] = true;  // a node that is named again is not searched again
    const Node& node = snapshot->node(index);
    if (Admits(node.spec(), pod) != Reason::kFits) continue;
    if (group.tree && MayJoin(*group.tree, pod, group.members, index) != Reason::kFits) continue;
    const auto added = AddedVictims(node, pod, asked.uids, limits);
    if (!added) continue;
    NodeVictims all = asked;
    all.uids.insert(all.uids.end(), added->begin(), added->end());
    if (group.tree && !HoldsRestOfGroup(*snapshot, *group.tree, pod, group.members, index,
                                        WithoutPods(node, all.uids))) {
      continue;  // the first of a group for which there would be no room even so
    }
    kept.push_back(std::move(all));
  }
  AgreeOn(*snapshot, pod, kept);
  parts_.sink.Record(
      {.verb = Verb::kPreempt, .pod = &pod.id, .candidates = nodes.size(), .fitting = kept.size()});
  return kept;
}

void Extender::AgreeOn(const Snapshot& snapshot, const PodRequest& pod,
                       std::vector<NodeVictims> nodes) {
  // A request may name anything: only what the books have is remembered, once.
  std::erase_if(nodes, [&](NodeVictims& victims) {
    const Node& node = snapshot.node(snapshot.names().Find(victims.node));
    std::ranges::sort(victims.uids);
    victims.uids.erase(std::unique(victims.uids.begin(), victims.uids.end()), victims.uids.end());
    std::erase_if(victims.uids,
                  [&node](const std::string& uid) { return node.FindPod(uid) == nullptr; });
    return victims.uids.empty();
  });
  if (!nodes.empty()) evictions_.Agree(pod.id.uid, std::move(nodes));
}

bool Extender::Bind(BindRequest request, BindDone done) {
  if (request.pod_name.empty() || request.node.empty()) {
    done(Invalid("bind: want PodName and Node, got PodName \"" + request.pod_name +
                 "\" and Node \"" + request.node + "\""));
    return true;
  }
  if (request.uid.empty()) request.uid = request.namespace_name + "/" + request.pod_name;
  const auto bind = std::make_shared<const BindsUnderWay::Bind>(
      BindsUnderWay::Bind{std::move(request), std::move(done)});
  const BindsUnderWay::Begun begun = under_way_.Begin(bind);
  switch (begun.outcome) {
    case BindsUnderWay::Outcome::kInLine:
      return true;
    case BindsUnderWay::Outcome::kTooMany:
      return false;
    case BindsUnderWay::Outcome::kElsewhere:
      bind->done(Fail(Errc::kConflict, "pod is being bound to node " + begun.node));
      return true;
    case BindsUnderWay::Outcome::kBegins:
      break;
  }
  if (!jobs_) {
    CarryOut(bind);
    return true;
  }
  if (Post(bind)) return true;
  // Nor is there room for those that stand in line by now, and this thread may not block.
  while (const auto next = under_way_.End(bind->request.uid)) {
    next->done(Fail(Errc::kDeadline, std::string(kTooManyBinds)));
  }
  return false;
}

bool Extender::Post(const BindsUnderWay::Entry& bind) {
  try {
    return jobs_ && jobs_([this, bind] { CarryOut(bind); });
  } catch (const std::exception&) {  // out of memory
    return false;
  }
}

void Extender::CarryOnWith(const BindsUnderWay::Entry& next) {
  if (next != nullptr && !Post(next)) CarryOut(next);
}

void Extender::CarryOut(BindsUnderWay::Entry bind) {
  while (bind != nullptr) {
    std::optional<Status> bound;
    try {
      bound = BindOnce(bind->request);
    } catch (...) {  // of this bind alone: whoever asked for it learns that by `done` being gone
    }
    // Before the answer: whoever has it may ask for the next bind of the pod at once.
    BindsUnderWay::Entry next = under_way_.End(bind->request.uid);
    try {
      if (bound) bind->done(*std::move(bound));
    } catch (...) {  // likewise
    }
    bind = next != nullptr && Post(next) ? nullptr : std::move(next);
  }
}

Status Extender::BindOnce(const BindRequest& request) {
  const Policy policy = this->policy();
  const PodId id{request.uid, request.namespace_name, request.pod_name};
  // kube-scheduler waits for a bind a little longer than Berth tries one (reservationSeconds). What
  // has waited for its turn for all that time is refused: it would be carried out after it was
  // given up, while the pod is scheduled anew.
  if (request.asked) {
    const Duration waited = parts_.clock.Now() - *request.asked;
    if (waited >= policy.reservation_time * 4 / 5) return WaitedTooLong(waited);
  }
  const std::string decision = NextDecisionId();
  const Result<Granted> granted = Commit(policy, id, request.node, decision);
  if (!granted) {
    parts_.sink.Record(
        {.verb = Verb::kBind, .pod = &id, .error = &granted.error(), .id = decision});
    return tl::unexpected(granted.error());
  }
  pending_.Forget(id.uid);
  evictions_.Forget(id.uid);
  parts_.sink.Record({.verb = Verb::kBind,
                      .pod = &id,
                      .placement = &granted->placement,
                      .id = decision,
                      .link_quality = granted->link_quality});
  return {};
}

// Sixteen hexadecimal digits: no two of a process are alike, and those of two hardly ever.
std::string Extender::NextDecisionId() {
  const auto time = static_cast<std::uint64_t>(parts_.clock.Wall().time_since_epoch().count());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(Mix64(time + decisions_.fetch_add(1))));
  return text;
}

// Reserve, tell the cluster, confirm.
Result<Extender::Granted> Extender::Commit(const Policy& policy, const PodId& id,
                                           const std::string& node, std::string_view decision) {
  std::shared_ptr<const PodRequest> pod = pending_.Find(id.uid);
  std::optional<PodRecord> held = parts_.state.FindPod(id.uid);
  std::optional<Placement> bound;
  // In doubt since an earlier bind, or never heard of since a restart: the cluster knows.
  if (held ? held->state == PodState::kReserved : pod == nullptr) {
    BERTH_TRY(PodTruth truth, Settle(id));
    pod = std::make_shared<const PodRequest>(std::move(truth.pod));
    bound = std::move(truth.placement);
    held = parts_.state.FindPod(id.uid);
  }
  if (held && held->state == PodState::kBound) bound = held->placement;
  if (bound) {
    if (bound->node == node) return Granted{*std::move(bound)};
    return Fail(Errc::kConflict, "pod is bound to node " + bound->node + " already");
  }
  if (!pod->refusal.empty()) return Invalid(pod->refusal);
  if (LeavesToScheduler(*pod)) return BindUnbooked(policy, *pod, node, decision);
  BERTH_TRY(Granted granted, ReserveOn(policy, *pod, node));
  if (Status told = TellReserved(policy, *pod, granted.placement, decision); !told) {
    return AsBoundBefore(id, node, std::move(told).error());
  }
  // A reservation that is gone by now went with its pod.
  (void)parts_.state.Confirm(id.uid);
  return granted;
}

// Bound there by an earlier attempt: the devices are those that the cluster has.
Result<Extender::Granted> Extender::AsBoundBefore(const PodId& id, const std::string& node,
                                                  Error error) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(id.uid);
  if (held && held->state == PodState::kBound && held->placement.node == node) {
    return Granted{held->placement};
  }
  return tl::unexpected(std::move(error));
}

// Nothing is reserved, so nothing can be refused: our books may be behind kube-scheduler's, and
// have no such node yet.
Result<Extender::Granted> Extender::BindUnbooked(const Policy& policy, const PodRequest& pod,
                                                 const std::string& node,
                                                 std::string_view decision) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(node);
  NodeSpec named;
  named.name = node;
  const Placement placement{node, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
  const Instant deadline = parts_.clock.Now() + policy.reservation_time * 4 / 5;
  Status bound =
      parts_.binder.Bind({pod, placement, index == kNoNode ? named : snapshot->node(index).spec(),
                          deadline, decision});
  if (bound) return Granted{placement};
  if (bound.error().code == Errc::kConflict) {  // it may be bound already
    Result<PodTruth> truth = Settle(pod.id);
    if (truth && truth->placement && truth->placement->node == node) {
      return Granted{*std::move(truth->placement)};
    }
  }
  return AsBoundBefore(pod.id, node, std::move(bound).error());
}

Status Extender::TellReserved(const Policy& policy, const PodRequest& pod,
                              const Placement& placement, std::string_view decision) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(placement.node);
  // The cluster has to be told well before the reservation is overdue.
  const Instant deadline = parts_.clock.Now() + policy.reservation_time * 4 / 5;
  Status bound = Fail(Errc::kNotFound, "node " + placement.node + " is gone");
  if (index != kNoNode) {
    bound = parts_.binder.Bind({pod, placement, snapshot->node(index).spec(), deadline, decision});
  }
  if (bound || bound.error().code == Errc::kUnavailable) return bound;
  if (bound.error().code == Errc::kConflict) {
    (void)Settle(pod.id);  // it may be bound elsewhere; while nobody knows, the reservation stays
  } else {
    parts_.state.Forget(pod.id.uid);
  }
  return bound;
}

// Asks the cluster about the pod, and books the answer if it is about a doubt that still exists. A
// pod that the books do not hold is left to the watch: it may have been deleted since the answer.
Result<PodTruth> Extender::Settle(const PodId& id) {
  const std::optional<ClusterState::Doubt> doubt = parts_.state.DoubtAbout(id.uid);
  Result<PodTruth> truth = parts_.binder.Find(id);
  if (doubt && truth && truth->placement) {
    parts_.state.Settle(*doubt, PodBound{truth->pod, *truth->placement, true});
  } else if (doubt && (truth || truth.error().code == Errc::kNotFound)) {
    parts_.state.Settle(*doubt, std::nullopt);
  }
  return truth;
}

std::size_t Extender::SettleOverdue() {
  std::size_t settled = 0;
  for (const ClusterState::Doubt& overdue : parts_.state.Overdue(parts_.clock.Now())) {
    const PodId& id = overdue.pod;
    if (!under_way_.BeginToAsk(id.uid)) continue;
    // Also when the binder throws: an entry that stayed would make every later bind of the pod
    // wait.
    const Cleanup end([&] { CarryOnWith(under_way_.End(id.uid)); });
    const auto doubt = parts_.state.DoubtAbout(id.uid);
    if (!doubt || doubt->number != overdue.number) continue;  // a bind has come and gone meanwhile
    if (const auto truth = Settle(id); !truth && truth.error().code != Errc::kNotFound) break;
    ++settled;
  }
  return settled;
}

Result<Extender::Granted> Extender::ReserveOn(const Policy& policy, const PodRequest& pod,
                                              const std::string& node) {
  Error last{Errc::kInternal, ""};
  for (int attempt = 0; attempt < kBindAttempts; ++attempt) {
    const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    if (index == kNoNode) return Fail(Errc::kNotFound, "node " + node + " is not known");
    auto placement = policy.engine->PlaceOn(snapshot, pod.shape, index);
    if (!placement) {
      return Fail(Errc::kConflict,
                  "pod does not fit node " + node + ": " + std::string(TextOf(placement.error())));
    }
    if (parts_.domains != nullptr && !pod.gang.empty()) {
      const Group group = GroupOf(snapshot, pod);
      const GpuMask rails = RailsFor(*snapshot, *group.tree, pod, group.members, index);
      placement = OnRails(snapshot->node(index), pod.shape, *std::move(placement), rails);
    }
    const Instant deadline = parts_.clock.Now() + policy.reservation_time;
    Status reserved = parts_.state.Reserve(pod, *placement, deadline);
    if (reserved) {
      // Asked when the reservation can be seen: of two members that are bound at the same time, at
      // least the later one finds the other.
      const Reason domain = DomainAllows(pod, node);
      if (domain != Reason::kFits) {
        parts_.state.Forget(pod.id.uid);
        return Fail(Errc::kConflict, std::string(TextOf(domain)));
      }
      const auto quality = LinkQualityRatio(snapshot->node(index), *placement);
      return Granted{*std::move(placement), quality};
    }
    last = std::move(reserved).error();
    if (last.code != Errc::kConflict) break;
  }
  return tl::unexpected(std::move(last));
}

}  // namespace berth
