// SPDX-License-Identifier: Apache-2.0
#include "server/extender/extender.h"

#include <algorithm>
#include <set>
#include <utility>

#include "scoring/registry.h"

namespace berth {

void Extender::Use(Policy policy) {
  const MutexLock lock(policy_mutex_);
  std::swap(policy_, policy);  // the old engine is freed after the lock
}

Extender::Policy Extender::policy() const {
  const MutexLock lock(policy_mutex_);
  return policy_;
}

std::vector<Reason> Extender::Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> candidates) {
  std::vector<Reason> reasons;
  if (!pod.refusal.empty()) {
    pending_.Forget(pod.id.uid);  // what it asked for before no longer holds
    reasons.assign(candidates.size(), Reason::kPodRefused);
  } else {
    pending_.Remember(pod);
    reasons = policy().engine->Filter(snapshot, pod.shape, candidates);
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
  recent_.Remember(snapshot, pod.shape, candidates);
  return policy().engine->Prioritize(snapshot, pod.shape, candidates);
}

std::vector<bool> Extender::Preempt(const std::shared_ptr<const Snapshot>& snapshot,
                                    const PodRequest& pod, std::span<const NodeVictims> nodes) {
  std::vector<bool> fits(nodes.size(), false);
  std::size_t fitting = 0;
  for (std::size_t i = 0; i < nodes.size() && pod.refusal.empty(); ++i) {
    const NodeIndex index = snapshot->names().Find(nodes[i].node);
    if (index == kNoNode) continue;
    Node without = snapshot->node(index);
    const std::set<std::string> uids(nodes[i].uids.begin(), nodes[i].uids.end());
    for (const std::string& uid : uids) {
      const auto victim = parts_.state.FindPod(uid);
      if (victim && victim->placement.node == nodes[i].node) {
        without.GiveBack(victim->placement, victim->pod.shape);
      }
    }
    fits[i] = FirstObjection(without, pod.shape) == Reason::kFits;
    if (fits[i]) ++fitting;
  }
  parts_.sink.Record(
      {.verb = Verb::kPreempt, .pod = &pod.id, .candidates = nodes.size(), .fitting = fitting});
  return fits;
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
  const Policy policy = this->policy();
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
    const Instant deadline = parts_.clock.Now() + policy.reservation_time;
    Status reserved = parts_.state.Reserve(pod, *placement, deadline);
    if (reserved) return *std::move(placement);
    last = std::move(reserved).error();
    if (last.code != Errc::kConflict) break;
  }
  return tl::unexpected(std::move(last));
}

}  // namespace berth
