// SPDX-License-Identifier: Apache-2.0
#include "server/extender/extender.h"

#include <algorithm>
#include <utility>

#include "scoring/admission.h"
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

}  // namespace

std::vector<Reason> Extender::Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> candidates) {
  std::vector<Reason> reasons;
  if (!pod.refusal.empty()) {
    pending_.Forget(pod.id.uid);  // what it asked for before no longer holds
    reasons.assign(candidates.size(), Reason::kPodRefused);
  } else {
    pending_.Remember(pod);
    reasons = parts_.engine.Filter(snapshot, pod.shape, candidates);
    Refine(*snapshot, pod, candidates, reasons);
  }
  const auto fitting = static_cast<std::size_t>(std::ranges::count(reasons, Reason::kFits));
  const auto first = std::ranges::find_if(reasons, [](Reason r) { return r != Reason::kFits; });
  parts_.sink.Record({.verb = Verb::kFilter,
                      .pod = &pod.id,
                      .candidates = candidates.size(),
                      .fitting = fitting,
                      .first_reason = first == reasons.end() ? Reason::kFits : *first});
  return reasons;
}

std::vector<std::uint8_t> Extender::Prioritize(const std::shared_ptr<const Snapshot>& snapshot,
                                               const PodRequest& pod,
                                               std::span<const NodeIndex> candidates) {
  parts_.sink.Record({.verb = Verb::kPrioritize, .pod = &pod.id, .candidates = candidates.size()});
  return parts_.engine.Prioritize(snapshot, pod.shape, candidates);
}

std::vector<NodeVictims> Extender::Preempt(const std::shared_ptr<const Snapshot>& snapshot,
                                           const PodRequest& pod,
                                           std::span<const NodeVictims> nodes) {
  static const DisruptionBudgets kNoBudgets;
  const auto budgets = (parts_.budgets == nullptr ? kNoBudgets : *parts_.budgets).Current();
  const EvictionLimits limits{
      *budgets, [this](std::string_view gang) { return parts_.state.GangSize(gang); }};
  std::vector<NodeVictims> kept;
  for (const NodeVictims& asked : nodes) {
    if (!pod.refusal.empty() || !pod.may_preempt) break;
    const NodeIndex index = snapshot->names().Find(asked.node);
    if (index == kNoNode) continue;
    const Node& node = snapshot->node(index);
    if (Admits(node.spec(), pod) != Reason::kFits) continue;
    const auto added = AddedVictims(node, pod, asked.uids, limits);
    if (!added) continue;
    kept.push_back(asked);
    kept.back().uids.insert(kept.back().uids.end(), added->begin(), added->end());
  }
  parts_.sink.Record(
      {.verb = Verb::kPreempt, .pod = &pod.id, .candidates = nodes.size(), .fitting = kept.size()});
  return kept;
}

Status Extender::Bind(const BindRequest& request) {
  if (request.pod_name.empty() || request.node.empty()) {
    return Invalid("bind: want PodName and Node, got PodName \"" + request.pod_name +
                   "\" and Node \"" + request.node + "\"");
  }
  const std::string uid =
      request.uid.empty() ? request.namespace_name + "/" + request.pod_name : request.uid;
  {
    const MutexLock lock(in_flight_mutex_);
    for (auto other = node_in_flight_.find(uid); other != node_in_flight_.end();
         other = node_in_flight_.find(uid)) {
      if (other->second != request.node) {
        return Fail(Errc::kConflict, "pod is being bound to node " + other->second);
      }
      in_flight_changed_.Wait(in_flight_mutex_);
    }
    node_in_flight_.emplace(uid, request.node);
  }
  // Also when the binder throws: an entry that stayed would make every later bind of the pod wait.
  const std::shared_ptr<void> landed(nullptr, [&](void*) {
    {
      const MutexLock lock(in_flight_mutex_);
      node_in_flight_.erase(uid);
    }
    in_flight_changed_.NotifyAll();
  });
  return BindOnce(request, uid);
}

Status Extender::BindOnce(const BindRequest& request, const std::string& uid) {
  const PodId id{uid, request.namespace_name, request.pod_name};
  const auto fail = [&](Error error) -> Status {
    parts_.sink.Record({.verb = Verb::kBind, .pod = &id, .error = &error});
    return tl::unexpected(std::move(error));
  };
  if (const auto held = parts_.state.FindPod(uid); held && held->state == PodState::kBound) {
    if (held->placement.node == request.node) return {};
    return fail({Errc::kConflict, "pod is bound to node " + held->placement.node + " already"});
  }
  const std::shared_ptr<const PodRequest> pod = pending_.Find(uid);
  if (pod == nullptr) {
    return fail({Errc::kNotFound, "pod is not known: no filter call has named it"});
  }
  Result<Placement> placement = ReserveOn(*pod, request.node);
  if (!placement) return fail(std::move(placement).error());
  if (Status bound = parts_.binder.Bind(*pod, *placement); !bound) {
    parts_.state.Forget(uid);
    return fail(std::move(bound).error());
  }
  if (!parts_.state.Confirm(uid)) {
    // The reservation ran out while the bind was under way; the pod is there all the same.
    const ClusterEvent truth = PodBound{*pod, *placement};
    BERTH_TRY_STATUS(parts_.state.Apply(std::span(&truth, 1)));
  }
  pending_.Forget(uid);
  parts_.sink.Record({.verb = Verb::kBind, .pod = &id, .placement = &*placement});
  return {};
}

Result<Placement> Extender::ReserveOn(const PodRequest& pod, const std::string& node) {
  Error last{Errc::kInternal, ""};
  for (int attempt = 0; attempt < kBindAttempts; ++attempt) {
    const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    if (index == kNoNode) return Fail(Errc::kNotFound, "node " + node + " is not known");
    auto placement = parts_.engine.PlaceOn(snapshot, pod.shape, index);
    if (!placement) {
      return Fail(Errc::kConflict,
                  "pod does not fit node " + node + ": " + std::string(TextOf(placement.error())));
    }
    const Instant deadline = parts_.clock.Now() + parts_.reservation_time;
    Status reserved = parts_.state.Reserve(pod, *placement, deadline);
    if (reserved) return *std::move(placement);
    last = std::move(reserved).error();
    if (last.code != Errc::kConflict) break;
  }
  return tl::unexpected(std::move(last));
}

}  // namespace berth
