// SPDX-License-Identifier: Apache-2.0
//
// RecentDecisions: between which nodes the last pods could choose, so that another profile can be
// asked the same.
//
// Memory is bounded: kCapacity decisions, all about one set of nodes (a decision about another set
// pushes out those before it). Their snapshots share every node and chunk of nodes that did not
// change in between. One placement between two decisions is a node, a chunk and the list of chunks,
// beside four bytes per candidate: about 25 KB a decision and 2 MB in all for 5,000 nodes. At worst
// every node changed between any two of them: kCapacity times the nodes, about 0.5 KB each.
// Decisions about shapes of more than kMostShapeBytes are left out.
//
// Any thread may call it. Remembering copies the candidates before the lock is taken; under the
// lock pointers change places.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"

namespace berth {

struct RecentDecision {
  std::shared_ptr<const Snapshot> snapshot;
  RequestShape shape;
  std::vector<NodeIndex> candidates;
  std::vector<int> pull;  // as Engine::Prioritize takes it
};

class RecentDecisions {
 public:
  static constexpr std::size_t kCapacity = 64;
  static constexpr std::size_t kMostShapeBytes = std::size_t{64} << 10;  // HeldBytes
  using List = std::vector<std::shared_ptr<const RecentDecision>>;

  void Remember(const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
                std::span<const NodeIndex> candidates, std::span<const int> pull = {})
      BERTH_EXCLUDES(mutex_);

  // Oldest first.
  [[nodiscard]] List All() const BERTH_EXCLUDES(mutex_);

 private:
  using Ring = std::array<std::shared_ptr<const RecentDecision>, kCapacity>;

  mutable Mutex mutex_;
  Ring ring_ BERTH_GUARDED_BY(mutex_);
  std::size_t next_ BERTH_GUARDED_BY(mutex_) = 0;  // the oldest, overwritten next
};

struct DecisionChanges {
  std::size_t compared = 0;
  std::size_t changed = 0;  // of them: the best node is another one
  [[nodiscard]] double ratio() const {
    return compared == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(compared);
  }
};

// Asks both engines for the best node of every decision: among its candidates with the highest
// priority the first by name; none when nothing fits. A function of the decisions and the profiles.
// The engines should not be in use: their tables follow the old snapshots.
DecisionChanges CompareDecisions(const RecentDecisions::List& decisions, Engine& before,
                                 Engine& after);

}  // namespace berth
