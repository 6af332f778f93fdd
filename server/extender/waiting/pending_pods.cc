// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/pending_pods.h"

#include <algorithm>
#include <utility>

#include "cluster/values/held_bytes.h"
#include "scoring/priority.h"

namespace berth {
namespace {

constexpr std::size_t kPerEntry = 320;  // what keeping a pod takes beside it and its UID
constexpr std::size_t kMostSchedulerBytes = 253;

NodeIndex BestNode(const RecentDecision& decision, Engine& engine) {
  const std::vector<std::uint8_t> priorities =
      engine.Prioritize(decision.snapshot, decision.shape, decision.candidates, decision.pull);
  NodeIndex best = kNoNode;  // the largest index there is
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    // The best of those that fit has the highest priority; what does not fit has 0.
    if (priorities[i] == kMaxPriority) best = std::min(best, decision.candidates[i]);
  }
  return best;
}

}  // namespace

bool PendingPods::Remember(const PodRequest& pod) {
  auto kept = std::make_shared<const PodRequest>(pod);
  const std::string& uid = kept->id.uid;
  const std::size_t bytes = kPerEntry + uid.size() + HeldBytes(*kept);
  const MutexLock lock(mutex_);
  if (schedulers_.size() < kMostSchedulers && pod.scheduler.size() <= kMostSchedulerBytes) {
    schedulers_.insert(pod.scheduler);
  }
  Known* const before = recent_.Find(uid);
  const bool is_new = before == nullptr;
  Known known = is_new ? Known() : std::move(*before);
  known.pod = std::move(kept);
  recent_.Put(uid, std::move(known), bytes);
  return is_new;
}

std::shared_ptr<const PodRequest> PendingPods::Find(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto* const known = recent_.Touch(uid);
  return known == nullptr ? nullptr : known->pod;
}

std::shared_ptr<const PodRequest> PendingPods::FindNamed(std::string_view namespace_name,
                                                         std::string_view name) const {
  const MutexLock lock(mutex_);
  for (const auto& entry : recent_) {
    const PodId& id = entry.value.pod->id;
    if (id.name == name && id.namespace_name == namespace_name) return entry.value.pod;
  }
  return nullptr;
}

void PendingPods::Forget(const std::string& uid) {
  const MutexLock lock(mutex_);
  recent_.Erase(uid);
}

std::set<std::string> PendingPods::ComesBack(const std::string& uid, Instant now) {
  std::set<std::string> nodes;
  const MutexLock lock(mutex_);
  Known* const known = recent_.Find(uid);
  if (known == nullptr) return nodes;
  auto& all = known->out;
  if (known->asks > 0 && now - known->told >= gangs::kComesBackAfter) {
    auto out = std::ranges::find(all, known->node, &gangs::NodeOut::node);
    const int asks = known->asks + 1;
    if (asks >= (out == all.end() ? gangs::kAsksWithoutBind : 2)) {
      if (out == all.end()) {
        if (all.size() >= kMostOut) all.erase(all.begin());
        out = all.insert(all.end(), {.node = known->node});
      }
      out->Take(asks, now);
      known->asks = 0;
    }
  }
  for (const gangs::NodeOut& out : all) {
    if (now < out.until) nodes.insert(out.node);
  }
  return nodes;
}

void PendingPods::Told(const std::string& uid, std::string_view node, Instant now) {
  const MutexLock lock(mutex_);
  Known* const known = recent_.Find(uid);
  if (known == nullptr) return;
  if (known->node != node) {
    known->node = node;
    known->asks = 0;
  }
  if (known->asks > 0 && now - known->told < gangs::kComesBackAfter) return;
  ++known->asks;
  known->told = now;
}

void PendingPods::BindComes(const std::string& uid) {
  const MutexLock lock(mutex_);
  if (Known* const known = recent_.Find(uid); known != nullptr) known->asks = 0;
}

std::string PendingPods::NotBound(const std::string& uid, Instant now) const {
  const MutexLock lock(mutex_);
  const Known* const known = recent_.Find(uid);
  if (known == nullptr || known->out.empty()) return "";
  const auto last = std::ranges::max_element(known->out, {}, &gangs::NodeOut::until);
  return now < last->until ? last->TextOf(known->pod->id.name) : "";
}

std::set<std::string> PendingPods::Schedulers() const {
  const MutexLock lock(mutex_);
  return schedulers_;
}

std::size_t PendingPods::size() const {
  const MutexLock lock(mutex_);
  return recent_.size();
}

std::size_t PendingPods::bytes() const {
  const MutexLock lock(mutex_);
  return recent_.bytes();
}

void RecentDecisions::Remember(const std::shared_ptr<const Snapshot>& snapshot,
                               const RequestShape& shape, std::span<const NodeIndex> candidates,
                               std::span<const int> pull) {
  if (HeldBytes(shape) > kMostShapeBytes) return;
  auto decision = std::make_shared<const RecentDecision>(RecentDecision{
      snapshot, shape, {candidates.begin(), candidates.end()}, {pull.begin(), pull.end()}});
  Ring dropped;  // destroyed after the lock is given back
  const MutexLock lock(mutex_);
  const RecentDecision* const newest = ring_[(next_ + kCapacity - 1) % kCapacity].get();
  if (newest != nullptr && !newest->snapshot->SameNodes(*snapshot)) ring_.swap(dropped);
  ring_[next_].swap(decision);  // as is the oldest one
  next_ = (next_ + 1) % kCapacity;
}

RecentDecisions::List RecentDecisions::All() const {
  List all;
  all.reserve(kCapacity);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < kCapacity; ++i) {
    const auto& decision = ring_[(next_ + i) % kCapacity];
    if (decision != nullptr) all.push_back(decision);
  }
  return all;
}

DecisionChanges CompareDecisions(const RecentDecisions::List& decisions, Engine& before,
                                 Engine& after) {
  DecisionChanges changes{decisions.size(), 0};
  for (const auto& decision : decisions) {
    if (BestNode(*decision, before) != BestNode(*decision, after)) ++changes.changed;
  }
  return changes;
}

void Evictions::Agree(const std::string& pod_uid, Nodes nodes) {
  std::size_t uids = 0;
  for (const NodeVictims& victims : nodes) uids += victims.uids.size();
  auto agreed = std::make_shared<const Nodes>(std::move(nodes));
  const MutexLock lock(mutex_);
  by_pod_.Put(pod_uid, {std::move(agreed), 0}, uids);
}

Evictions::Agreed Evictions::Find(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  const Agreed* const agreed = by_pod_.Find(pod_uid);
  return agreed == nullptr ? Agreed() : *agreed;
}

std::shared_ptr<const Evictions::Nodes> Evictions::StillThere(const std::string& pod_uid,
                                                              const Snapshot& snapshot) {
  const Agreed known = Find(pod_uid);
  if (known.nodes == nullptr || known.times >= kMostTimes) return nullptr;
  const bool all = std::ranges::all_of(*known.nodes, [&](const NodeVictims& victims) {
    const Node* const node = snapshot.FindNode(victims.node);
    return node != nullptr && std::ranges::any_of(victims.uids, [node](const std::string& uid) {
             return node->FindPod(uid) != nullptr;
           });
  });
  if (all) return known.nodes;
  const MutexLock lock(mutex_);
  const Agreed* const now = by_pod_.Find(pod_uid);
  if (now != nullptr && now->nodes == known.nodes) by_pod_.Erase(pod_uid);
  return nullptr;
}

bool Evictions::Counted(const std::string& pod_uid, bool is_awaited) {
  const MutexLock lock(mutex_);
  Agreed* const agreed = is_awaited ? by_pod_.Find(pod_uid) : nullptr;
  if (agreed != nullptr) ++agreed->times;
  return is_awaited;
}

bool Evictions::Awaited(const std::string& pod_uid, const Snapshot& snapshot,
                        std::span<const NodeIndex> candidates) {
  const auto nodes = StillThere(pod_uid, snapshot);
  const auto is_candidate = [&](const NodeVictims& victims) {
    return std::ranges::find(candidates, snapshot.names().Find(victims.node)) != candidates.end();
  };
  return Counted(pod_uid, nodes != nullptr && std::ranges::any_of(*nodes, is_candidate));
}

bool Evictions::AwaitedElsewhere(const std::string& pod_uid, const Snapshot& snapshot,
                                 std::span<const NodeVictims> asked) {
  const auto nodes = StillThere(pod_uid, snapshot);
  const auto is_asked = [&](const NodeVictims& victims) {
    return std::ranges::find(asked, victims.node, &NodeVictims::node) != asked.end();
  };
  return Counted(pod_uid, nodes != nullptr && std::ranges::none_of(*nodes, is_asked));
}

NodeVictims Evictions::AgreedOn(const std::string& pod_uid, const std::string& node) {
  const auto nodes = Find(pod_uid).nodes;
  if (nodes == nullptr) return {node, {}};
  const auto victims = std::ranges::find(*nodes, node, &NodeVictims::node);
  return victims == nodes->end() ? NodeVictims{node, {}} : *victims;
}

void Evictions::Forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  by_pod_.Erase(pod_uid);
}

void OwedWakes::Wake(std::span<const PodId> pods) {
  if (waker_ == nullptr) return;
  const MutexLock lock(mutex_);
  for (const PodId& pod : pods) {
    if (by_uid_.size() < kMost) by_uid_.try_emplace(pod.uid, pod);
  }
  while (!by_uid_.empty() && waker_->Wake(by_uid_.begin()->second)) by_uid_.erase(by_uid_.begin());
}

}  // namespace berth
