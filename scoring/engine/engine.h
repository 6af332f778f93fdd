// SPDX-License-Identifier: Apache-2.0
//
// Engine: the decisions of a policy, as functions of a snapshot and of the request mix.
//
// The server, the replay and the tests drive the same engine. Any thread may call it.
//
//   Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), mix).value());
//   const auto snapshot = state.Current();
//   const auto reasons = engine.Filter(snapshot, pod.shape, nodes);  // kFits, or why not
//   const auto best = engine.Best(snapshot, pod.shape);              // empty: nothing fits
//   const auto placement = engine.PlaceOn(snapshot, pod.shape, best.front());
//   state.Reserve(pod, *placement, deadline);
//
// Where the mix is learned, Follow builds the scorers anew at each of its epochs, and with them the
// tables of evaluated nodes. These fill as they are asked (evaluation_table.h): what is counted is
// states, not time, so that the same calls in the same order give the same answers.
//
// In front of an API server the engine gets a background. What an epoch needs is then made there,
// tables for the shapes of the last pods included, while the epoch before decides; so is what a new
// table leaves over. No decision waits for either, and when they are there depends on the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "scoring/engine/profile_tables.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// Runs a job at some time, on another thread; false: it has no room for it.
using Background = std::function<bool(std::function<void()> job)>;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  // A profile that stays as it is.
  explicit Engine(Profile profile)
      : Engine(std::make_shared<ProfileTables>(std::move(profile)), {}) {}

  // A profile whose scorers are built anew when what they are built from changes.
  struct Learning {
    ProfileSpec spec;
    WasteParameters waste;
    std::shared_ptr<const LearnedMix> mix;  // nullptr: the mix is `fixed`
    std::shared_ptr<const RequestMix> fixed = nullptr;
    Background background = {};            // empty: all is done by the calls themselves
    std::vector<ProfileSpec> others = {};  // of pods that name one (NodeWishes::profile)
  };
  // snapshot: for the nodes that there are. Error: as BuildProfile.
  static Result<std::shared_ptr<Engine>> Create(Learning learning, const Snapshot& snapshot = {});

  // Takes note of the mix: called once for every pod that arrives, after the mix has heard of it.
  // Nothing is done but at the beginning of an epoch, and nothing at all where the profile does not
  // look at a mix. Without a background later epochs are calibrated over some calls, so that none
  // takes more than a few milliseconds; until then the profile of the epoch before decides.
  void Follow(const std::shared_ptr<const Snapshot>& snapshot) BERTH_EXCLUDES(following_mutex_);

  // That decides at present about pods of that shape.
  [[nodiscard]] std::shared_ptr<const Profile> profile(const RequestShape& shape = {}) const;

  // An engine that decides by these profiles for good, on tables of its own that leave no node
  // waiting: for questions that must leave nothing in the tables here.
  [[nodiscard]] std::shared_ptr<Engine> Apart() const;
  // The same, but it goes on as this one would that hears of what `mix` hears: Follow builds its
  // profiles anew at the epochs of `mix`, which is a copy of the mix of this one. What a background
  // would do it does at once. Waits for a background that builds profiles now.
  [[nodiscard]] std::shared_ptr<Engine> Apart(std::shared_ptr<const LearnedMix> mix) const
      BERTH_EXCLUDES(following_mutex_);
  // Evaluates all nodes anew for the next questions. It frees what the tables take.
  void ForgetTables() BERTH_EXCLUDES(mutex_);

  // One reason per candidate: kFits or why not. Requires: candidates are nodes of the snapshot.
  [[nodiscard]] std::vector<Reason> Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                           const RequestShape& shape,
                                           std::span<const NodeIndex> candidates) {
    const std::shared_ptr<ProfileTables> tables = Tables();
    std::vector<Reason> reasons = tables->Filter(snapshot, shape, candidates);
    CompleteLater(tables, shape);
    return reasons;
  }

  // One priority 0..10 per candidate (see priority.h); a candidate that does not fit gets 0 and has
  // no part in the ranking. pull: what draws this one pod to each candidate, 0..100, weighed by the
  // profile's domain-locality (group_domains.h); empty: nothing does. It changes which node is
  // best, never what the pod would get there.
  [[nodiscard]] std::vector<std::uint8_t> Prioritize(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
      std::span<const NodeIndex> candidates, std::span<const int> pull = {}) {
    return Tables()->Prioritize(snapshot, shape, candidates, pull);
  }

  // All nodes that share the best total, in name order; only the first under TieRule::kFirst, only
  // the fullest under kFullest. Empty when nothing fits.
  [[nodiscard]] std::vector<NodeIndex> Best(const std::shared_ptr<const Snapshot>& snapshot,
                                            const RequestShape& shape) {
    return Tables()->Best(snapshot, shape);
  }

  // Where the pod would go on that node: what Filter and Prioritize looked at; or the reason
  // against it.
  [[nodiscard]] tl::expected<Placement, Reason> PlaceOn(
      const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape, NodeIndex node) {
    return Tables()->PlaceOn(snapshot, shape, node);
  }

  // What pods of that shape find, to follow a plan with.
  [[nodiscard]] PlanTable TableFor(const std::shared_ptr<const Snapshot>& snapshot,
                                   const RequestShape& shape) {
    return ProfileTables::TableFor(Tables(), snapshot, shape);
  }

 private:
  static constexpr int kFirstRounds = 12, kRounds = 3;  // of calibration, per epoch
  static constexpr std::size_t kSample = 64;            // nodes that it looks at as they are
  // So many pods are a beginning, in which epochs are short and all rounds are made at once.
  static constexpr std::int64_t kBeginningPods = 1000;

  Engine(std::shared_ptr<ProfileTables> tables, Learning learning)
      : learning_(std::move(learning)), use_(UseOf(learning_)), tables_(std::move(tables)) {}

  // Of one decision, where there is a background: less than a millisecond.
  static constexpr RefreshEffort kServedEffort{2, 150};
  static constexpr std::size_t kPreparedShapes = 64;
  // After so many pods the prices that take too long for a decision are made anew
  // (Market::Outlook).
  static constexpr int kPodsPerLook = 100;

  [[nodiscard]] static MixUse UseOf(const Learning& learning);
  [[nodiscard]] LearnedMix::Epoch CurrentMix() const;
  [[nodiscard]] RefreshEffort EffortOfDecisions() const;
  // Takes up what is new, or goes on with it. The tables of the next epoch once they can be made.
  [[nodiscard]] std::shared_ptr<ProfileTables> Advance(
      const std::shared_ptr<const Snapshot>& snapshot) BERTH_REQUIRES(following_mutex_);
  void Use(std::shared_ptr<ProfileTables> tables) BERTH_EXCLUDES(mutex_);
  void FollowInBackground(const std::shared_ptr<const Snapshot>& snapshot)
      BERTH_EXCLUDES(waiting_mutex_);
  // What the background does: epochs, until it has caught up.
  void CatchUp() BERTH_EXCLUDES(following_mutex_, waiting_mutex_);
  void CompleteLater(const std::shared_ptr<ProfileTables>& tables, const RequestShape& shape);
  // Whether nodes have come or gone, and with them models.
  [[nodiscard]] bool HasOtherModels(const std::shared_ptr<const Snapshot>& snapshot)
      BERTH_REQUIRES(following_mutex_);
  [[nodiscard]] std::shared_ptr<ProfileTables> Tables() const BERTH_EXCLUDES(mutex_);
  // Takes up an epoch: its mix has the draws of the one before and is still to be calibrated.
  void Begin(const LearnedMix::Epoch& epoch, const Snapshot& snapshot)
      BERTH_REQUIRES(following_mutex_);
  void CalibrateOnce(const Snapshot& snapshot) BERTH_REQUIRES(following_mutex_);
  [[nodiscard]] Result<Profiles> Build() const BERTH_REQUIRES(following_mutex_);

  const Learning learning_;
  const MixUse use_;          // kNone: the profile stays as it is
  bool is_thorough_ = false;  // does at once what a background would do; set before it is shared
  mutable Mutex mutex_;
  std::shared_ptr<ProfileTables> tables_ BERTH_GUARDED_BY(mutex_);
  mutable Mutex following_mutex_;
  // Of the epoch that was taken up last.
  std::uint64_t epoch_ BERTH_GUARDED_BY(following_mutex_) = 0;
  RequestMix mix_ BERTH_GUARDED_BY(following_mutex_);
  Fleet fleet_ BERTH_GUARDED_BY(following_mutex_);
  FleetModels models_ BERTH_GUARDED_BY(following_mutex_);                         // of fleet_
  std::shared_ptr<const Snapshot> looked_at_ BERTH_GUARDED_BY(following_mutex_);  // for models
  double gpu_pods_ BERTH_GUARDED_BY(following_mutex_) = 0;  // with GPUs, that the mix is of
  Turnover turnover_ BERTH_GUARDED_BY(following_mutex_);
  double used_ BERTH_GUARDED_BY(following_mutex_) = 0;      // part of all GPU, then
  int rounds_left_ BERTH_GUARDED_BY(following_mutex_) = 0;  // of calibration
  int rounds_at_once_ BERTH_GUARDED_BY(following_mutex_) = 1;

  Mutex waiting_mutex_;
  int pods_since_look_ BERTH_GUARDED_BY(waiting_mutex_) = 0;
  bool catching_up_ BERTH_GUARDED_BY(waiting_mutex_) = false;
  // The newest snapshot that was to be followed, and what the background took up last.
  std::shared_ptr<const Snapshot> newest_ BERTH_GUARDED_BY(waiting_mutex_);
  std::shared_ptr<const Snapshot> taken_up_ BERTH_GUARDED_BY(waiting_mutex_);
  std::uint64_t epoch_taken_up_ BERTH_GUARDED_BY(waiting_mutex_) = 0;
};

}  // namespace berth
