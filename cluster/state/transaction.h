// SPDX-License-Identifier: Apache-2.0
//
// Transaction: a snapshot in the making - pods are put on nodes one after the other, each checked
// with those before it in place, and any of the steps can be taken back.
//
// A Snapshot shares with the one before it whatever did not change. So a step costs one node and
// one chunk, every moment of the transaction is a Snapshot that anybody may read, and going back is
// keeping the old one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct PodPlacement {
  PodRequest pod;
  Placement placement;
};

// A value; not thread-safe.
class Transaction {
 public:
  explicit Transaction(std::shared_ptr<const Snapshot> from) : now_(std::move(from)) {}

  // What the cluster would be.
  [[nodiscard]] const std::shared_ptr<const Snapshot>& now() const { return now_; }

  // The pod takes the placement, in place of what it has on that node. Error: kConflict when it
  // does not fit, kNotFound when the node is not known; nothing changes then.
  Status Put(const PodRequest& pod, Placement placement);

  // The pod leaves the node. A pod that is not there leaves nothing.
  void Take(std::string_view uid, NodeIndex node);

  // A moment to go back to. Marks nest: going back to one forgets those after it.
  struct Mark {
    std::shared_ptr<const Snapshot> snapshot;
    std::size_t placed = 0;
  };
  [[nodiscard]] Mark Here() const { return {now_, placed_.size()}; }
  void Return(const Mark& mark);

  // What was put, in order, and not taken back by Return.
  [[nodiscard]] std::span<const PodPlacement> placed() const { return placed_; }

 private:
  std::shared_ptr<const Snapshot> now_;
  std::vector<PodPlacement> placed_;
};

}  // namespace berth
