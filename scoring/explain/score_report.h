// SPDX-License-Identifier: Apache-2.0
//
// ScoreReport: which of the nodes that fit the profile likes best, and what each scorer says.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "scoring/engine/engine.h"

namespace berth {

struct ScorePart {
  std::string scorer;
  int weight = 1;
  // As the scorer gives it for these devices, on its own scale; higher is better.
  int score = 0;
};

struct ScoredNode {
  NodeIndex node = kNoNode;
  std::size_t place = 1;  // 1 = the best; equal ones share a place, but the best of Priorities()
  Placement placement;    // what the pod would get
  std::vector<ScorePart> parts;
  std::string behind;  // Behind::text; it may hold for all of them
};

// The best nodes, at most `most`, best first, and `always` if it is one of them, wherever it is.
// The order has all that decides between nodes: scores, weights, prices of what is scarce, and how
// empty a node is among equals. real: the snapshot that the engine decides on; snapshot: that one,
// or one with the same nodes that is only thought of. Requires: the pod fits all of `fitting` on
// `snapshot`; in order.
std::vector<ScoredNode> ReportScores(Engine& engine, const std::shared_ptr<const Snapshot>& real,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> fitting,
                                     std::size_t most, NodeIndex always = kNoNode);

}  // namespace berth
