// SPDX-License-Identifier: Apache-2.0
//
// ProfileTables: the decisions of the profiles of one configuration, as functions of a snapshot.
// Each request shape has its profile (Profiles::Of).
//
// Any thread may call it: the rows per request shape are guarded, and callers with different shapes
// do not wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "scoring/engine/evaluation_table.h"
#include "scoring/profile.h"
#include "scoring/reason.h"
#include "scoring/waste/market.h"

namespace berth {

// PlanTable: what one request shape finds where, along snapshots that are only thought of.
//
// A private copy of the engine's table of that shape (evaluation_table.h): the shared one follows
// the cluster, and following a plan as well would make every other decision evaluate the difference
// twice. The prices are those of the first snapshot: one plan, one price list. Not thread-safe.

class PlanTable {
 public:
  // profile: whatever keeps the table's profile alive. The table is that of the snapshot.
  PlanTable(std::shared_ptr<const void> profile, std::shared_ptr<const Snapshot> snapshot,
            RequestShape shape, EvaluationTable table, std::vector<double> prices)
      : profile_(std::move(profile)),
        snapshot_(std::move(snapshot)),
        shape_(std::move(shape)),
        table_(std::move(table)),
        prices_(std::move(prices)) {}

  // Evaluates the nodes that are not the same objects as before.
  void Follow(const std::shared_ptr<const Snapshot>& snapshot);

  [[nodiscard]] bool Fits(NodeIndex node) const { return table_.reason(node) == Reason::kFits; }

  // The higher the better, comparable within one call. pull: as Prioritize takes it, of that
  // weight. Requires: all of them fit.
  [[nodiscard]] std::vector<std::int64_t> Ranks(std::span<const NodeIndex> candidates,
                                                std::span<const int> pull = {},
                                                int locality_weight = 0);

  // Requires: it fits there.
  [[nodiscard]] Placement PlaceOn(NodeIndex node);

 private:
  std::shared_ptr<const void> profile_;
  std::shared_ptr<const Snapshot> snapshot_;
  RequestShape shape_;
  EvaluationTable table_;
  std::vector<double> prices_;
};

class ProfileTables {
 public:
  // The number of tables, of one request shape each or of shapes that differ in wishes alone; the
  // least recently used one is dropped first.
  static constexpr std::size_t kMaxShapes = 512;
  // About what the shapes themselves take (HeldBytes): tenants make them large. Beyond it tables
  // are dropped in the same order.
  static constexpr std::size_t kMostShapeBytes = std::size_t{16} << 20;

  // effort: of one decision on a table.
  explicit ProfileTables(Profile profile, const RefreshEffort& effort = {})
      : ProfileTables(Profiles{std::make_shared<const Profile>(std::move(profile))}, effort) {}
  ProfileTables(Profiles profiles, const RefreshEffort& effort);
  // Empty tables with the same profiles and outlook.
  ProfileTables(const ProfileTables& like, const RefreshEffort& effort);

  [[nodiscard]] const Profiles& profiles() const { return profiles_; }
  [[nodiscard]] const RefreshEffort& effort() const { return effort_; }

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

  // Makes the prices anew that no decision makes (Market::Outlook).
  void LookAt(const Snapshot& snapshot);

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

  [[nodiscard]] std::size_t shape_bytes() BERTH_EXCLUDES(mutex_);

 private:
  // A profile, and what is dear in its market.
  struct Policy {
    explicit Policy(const Profile& of);
    // None without a market.
    [[nodiscard]] std::vector<double> PricesIn(const std::shared_ptr<const Snapshot>& snapshot)
        BERTH_EXCLUDES(mutex);
    [[nodiscard]] std::vector<double> outlook() BERTH_EXCLUDES(mutex);
    void SetOutlook(std::vector<double> outlook) BERTH_EXCLUDES(mutex);

    const Profile& profile;
    const Market* const market;
    Mutex mutex;
    std::optional<SupplyLedger> ledger BERTH_GUARDED_BY(mutex);
  };
  struct Entry {
    Entry(Policy& of, const RequestShape& wanted)
        : policy(of), shape(wanted), table(of.profile, wanted) {}
    // What the table does not know of the pod of its entry.
    [[nodiscard]] std::span<const TraitWish> WishesOf(const RequestShape& of_pod) const {
      return shape.nodes.wishes.empty() ? std::span<const TraitWish>(of_pod.nodes.wishes)
                                        : std::span<const TraitWish>();
    }
    Policy& policy;
    const RequestShape shape;
    std::atomic<int> asked{0};  // decisions that are under way; a completing one lets them pass
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

  // That decides about pods of that shape; several shapes have one (EvaluationTable::SharesWishes).
  [[nodiscard]] std::shared_ptr<Entry> EntryFor(const RequestShape& shape) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<Entry> EntryOf(const RequestShape& shape) BERTH_EXCLUDES(mutex_);
  static void Complete(Entry& entry, const RefreshEffort& effort);
  [[nodiscard]] Policy& PolicyOf(const RequestShape& shape) const;

  const Profiles profiles_;
  const std::vector<std::unique_ptr<Policy>> policies_;  // the chosen one first
  const RefreshEffort effort_;
  Mutex mutex_;
  // bytes: of the shapes, wherever they are kept
  Recent<RequestShape, std::shared_ptr<Entry>> recent_ BERTH_GUARDED_BY(mutex_){kMaxShapes,
                                                                                kMostShapeBytes};
};

}  // namespace berth
