// SPDX-License-Identifier: Apache-2.0
#include "server/extender/recent_decisions.h"

#include <algorithm>
#include <utility>

#include "cluster/values/held_bytes.h"
#include "scoring/priority.h"

namespace berth {
namespace {

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

}  // namespace berth
