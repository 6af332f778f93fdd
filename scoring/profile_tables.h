// SPDX-License-Identifier: Apache-2.0
//
// ProfileTables: the decisions of one profile, as functions of a snapshot.
//
// Any thread may call it: the rows per request shape are guarded, and callers with different shapes
// do not wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/placement.h"
#include "cluster/snapshot.h"
#include "scoring/evaluation_table.h"
#include "scoring/plan_table.h"
#include "scoring/profile.h"
#include "scoring/reason.h"
#include "scoring/waste/supply_ledger.h"

namespace berth {

class ProfileTables {
 public:
  // The number of request shapes with a table; the least recently used one is dropped first.
  static constexpr std::size_t kMaxShapes = 512;

  // effort: of one decision on a table.
  explicit ProfileTables(Profile profile, const RefreshEffort& effort = {})
      : ProfileTables(std::make_shared<const Profile>(std::move(profile)), effort) {}
  ProfileTables(std::shared_ptr<const Profile> profile, const RefreshEffort& effort);

  [[nodiscard]] const Profile& profile() const { return profile_; }

  // As in Engine.
  [[nodiscard]] std::vector<Reason> Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                           const RequestShape& shape,
                                           std::span<const NodeIndex> candidates);
  [[nodiscard]] std::vector<std::uint8_t> Prioritize(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
      std::span<const NodeIndex> candidates, std::span<const int> pull = {});
  [[nodiscard]] std::vector<NodeIndex> Best(const std::shared_ptr<const Snapshot>& snapshot,
                                            const RequestShape& shape);
  [[nodiscard]] tl::expected<Placement, Reason> PlaceOn(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape, NodeIndex node);

  // A copy of the table of that shape, for a plan. tables: this object, which it keeps alive.
  [[nodiscard]] static PlanTable TableFor(const std::shared_ptr<ProfileTables>& tables,
                                          const std::shared_ptr<const Snapshot>& snapshot,
                                          const RequestShape& shape);

  // Makes and completes tables for the shapes that the other tables were asked for last, at most
  // `most`, so that later decisions find them.
  void Prepare(const std::shared_ptr<const Snapshot>& snapshot, ProfileTables& others,
               std::size_t most);

  // True, once: the table of that shape has waiting nodes and no thread completes it yet. The
  // caller that gets true calls Complete.
  [[nodiscard]] bool NeedsCompleting(const RequestShape& shape);
  // Scores the waiting nodes, some at a time: a decision in between waits no longer than for
  // itself.
  void Complete(const RequestShape& shape);

 private:
  struct Entry {
    explicit Entry(const Profile& profile, const RequestShape& wanted)
        : shape(wanted), table(profile, wanted) {}
    const RequestShape shape;
    std::atomic<int> asked{0};  // decisions that are under way; whoever completes lets them pass
    Mutex mutex;
    EvaluationTable table BERTH_GUARDED_BY(mutex);
    bool completes BERTH_GUARDED_BY(mutex) = false;  // somebody does, or is going to
  };
  // A decision on an entry, from before it has the lock.
  class Asking {
   public:
    explicit Asking(Entry& entry) : entry_(entry) { ++entry_.asked; }
    ~Asking() { --entry_.asked; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    Entry& entry_;
  };
  struct ShapeHash {
    std::size_t operator()(const RequestShape& shape) const { return HashValue(shape); }
  };
  using Recent = std::list<std::shared_ptr<Entry>>;  // most recently used first

  [[nodiscard]] std::shared_ptr<Entry> EntryOf(const RequestShape& shape) BERTH_EXCLUDES(mutex_);
  static void Complete(Entry& entry, const RefreshEffort& effort);
  // None without a market.
  [[nodiscard]] std::vector<double> PricesIn(const std::shared_ptr<const Snapshot>& snapshot)
      BERTH_EXCLUDES(ledger_mutex_);

  // Adds the pull to the totals of some candidates. weights: the sum of the weights of the scorers;
  // positions: those of the candidates in `pull`.
  void AddPull(int weights, std::span<const std::size_t> positions, std::span<const int> pull,
               std::span<int> totals) const;

  const std::shared_ptr<const Profile> held_;
  const Profile& profile_;  // that is held
  const RefreshEffort effort_;
  Mutex mutex_;
  Recent recent_ BERTH_GUARDED_BY(mutex_);
  std::unordered_map<RequestShape, Recent::iterator, ShapeHash> by_shape_ BERTH_GUARDED_BY(mutex_);
  Mutex ledger_mutex_;
  std::optional<SupplyLedger> ledger_ BERTH_GUARDED_BY(ledger_mutex_);
  const bool has_market_;
};

}  // namespace berth
