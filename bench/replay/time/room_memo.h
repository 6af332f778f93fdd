// SPDX-License-Identifier: Apache-2.0
//
// RoomMemo: skips attempts that cannot succeed.
//
// A waiting pod is tried again after every event, and most of these attempts find the cluster as
// full as before. Whether a node can take a shape depends on the shape and on what is free there,
// never on the policy, and placing more pods cannot make room. So after a failed attempt only nodes
// that a pod has left since can take the shape. The memo changes no result
// (test/unit/replay/simulation_test.cc), only the time it takes.
#pragma once

#include <cstddef>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/registry.h"

namespace berth::replay {

// Not thread-safe. The caller numbers the shapes, from 0 to below `shapes`.
class RoomMemo {
 public:
  explicit RoomMemo(std::size_t shapes) : seen_(shapes, kNever) {}

  // False if an attempt certainly fails.
  bool MayFit(std::size_t shape_number, const RequestShape& shape, const Snapshot& snapshot) {
    std::size_t& seen = seen_[shape_number];
    if (seen == kNever) return true;
    for (; seen < freed_.size(); ++seen) {
      if (FirstObjection(snapshot.node(freed_[seen]), shape) == Reason::kFits) return true;
    }
    return false;
  }
  // An attempt found no place for the shape.
  void Failed(std::size_t shape_number) { seen_[shape_number] = freed_.size(); }
  // A pod has gone from the node.
  void Freed(NodeIndex node) { freed_.push_back(node); }

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  std::vector<NodeIndex> freed_;   // in order, for the whole run
  std::vector<std::size_t> seen_;  // per shape: how many entries of freed_ cannot take it
};

}  // namespace berth::replay
