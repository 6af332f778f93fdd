// SPDX-License-Identifier: Apache-2.0
//
// Engine: the decisions of one profile, as functions of a snapshot.
//
// The server, the replay and the tests drive the same engine. Any thread may call it: the rows that
// it remembers per request shape are guarded, and callers of different shapes do not wait for each
// other.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cluster/placement.h"
#include "cluster/snapshot.h"
#include "scoring/evaluation_table.h"
#include "scoring/profile.h"
#include "scoring/reason.h"

namespace berth {

class Engine {
 public:
  // Tables are kept for so many request shapes; the one not used for longest goes first.
  static constexpr std::size_t kMaxShapes = 512;

  explicit Engine(Profile profile) : profile_(std::move(profile)) {}

  [[nodiscard]] const Profile& profile() const { return profile_; }

  // One reason per candidate: kFits or why not. Requires: candidates are nodes of the snapshot.
  [[nodiscard]] std::vector<Reason> Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                           const RequestShape& shape,
                                           std::span<const NodeIndex> candidates);

  // One priority 0..10 per candidate (see priority.h); a candidate that does not fit gets 0 and has
  // no part in the ranking.
  [[nodiscard]] std::vector<std::uint8_t> Prioritize(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
      std::span<const NodeIndex> candidates);

  // All nodes that share the best total, in name order; only the first under TieRule::kFirst. Empty
  // when nothing fits.
  [[nodiscard]] std::vector<NodeIndex> Best(const std::shared_ptr<const Snapshot>& snapshot,
                                            const RequestShape& shape);

  // Where the pod would go on that node: what Filter and Prioritize looked at; or the reason
  // against it.
  [[nodiscard]] tl::expected<Placement, Reason> PlaceOn(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape, NodeIndex node);

 private:
  struct Entry {
    explicit Entry(const Profile& profile, const RequestShape& wanted)
        : shape(wanted), table(profile, wanted) {}
    const RequestShape shape;
    Mutex mutex;
    EvaluationTable table BERTH_GUARDED_BY(mutex);
  };
  struct ShapeHash {
    std::size_t operator()(const RequestShape& shape) const { return HashValue(shape); }
  };
  using Recent = std::list<std::shared_ptr<Entry>>;  // most recently used first

  [[nodiscard]] std::shared_ptr<Entry> EntryOf(const RequestShape& shape) BERTH_EXCLUDES(mutex_);

  const Profile profile_;
  Mutex mutex_;
  Recent recent_ BERTH_GUARDED_BY(mutex_);
  std::unordered_map<RequestShape, Recent::iterator, ShapeHash> by_shape_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
