// SPDX-License-Identifier: Apache-2.0
//
// EnginePlacer: decides with the engine in this process, by the same judgement as the server
// (scoring/judgement.h), and takes one of the best nodes as kube-scheduler would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "bench/replay/policy.h"
#include "bench/replay/replay.h"
#include "bench/rules/kube_choice.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/earmarks/earmark_line.h"
#include "scoring/engine/engine.h"
#include "scoring/judgement.h"

namespace berth::replay {

// Which of several nodes of equal score the scheduler takes.
class TieBreaker {
 public:
  // A policy without scorers leaves the whole choice to the scheduler: it then draws at random with
  // the seed. Every other tie goes to the first, as in the published protocol.
  TieBreaker(const Profile& profile, std::uint64_t seed)
      : draws_(profile.scorers.empty() && profile.ties == TieRule::kEqual), random_(seed) {}

  // An index below `count`. Requires: count > 0.
  std::size_t Pick(std::size_t count) {
    return draws_ ? static_cast<std::size_t>(random_.Below(count)) : 0;
  }

 private:
  bool draws_;
  Random random_;
};

class EnginePlacer final : public Placer {
 public:
  // What a server has beside its engine. The defaults are those of the published protocol, in which
  // the scheduler looks at every node that fits.
  struct Serving {
    std::size_t nodes_to_score = 0;  // Extender::Policy; 0: all
    TopologyLevels levels = {};
    WishesByClass classes = {};                  // of the pods, by the first of PodRequest::classes
    std::optional<KubeStrategy> scheduler = {};  // chooses in place of the engine's priorities
    std::optional<EarmarkLimits> earmarks = {};  // empty: nothing is kept for pods that wait
  };

  // cluster: what builds it. mix: what is learned; nullptr: nothing is. Requires: the engine and
  // the mix outlive the placer.
  EnginePlacer(Engine& engine, const std::vector<ClusterEvent>& cluster, std::uint64_t seed,
               LearnedMix* mix, Serving serving);
  // The same on nodes without pods.
  EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed,
               LearnedMix* mix, Serving serving);
  EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed,
               LearnedMix* mix = nullptr)
      : EnginePlacer(engine, nodes, seed, mix, Serving()) {}

  // Hear, then Put.
  Result<std::optional<Placement>> Place(const PodRequest& pod) override;
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override {
    return state_.Current();
  }

  // A pod has arrived: told once, before the first attempt to place it.
  void Hear(const PodRequest& pod);
  // Where it is now, as an index into the snapshot; empty when there is no room. `now`, and when it
  // arrived, and for how long it has run before `now`: for earmarks.
  Result<std::optional<NodeIndex>> Put(const PodRequest& pod, Instant now = {},
                                       WallTime arrived = {}, Duration ran = {});
  // Whether there is a line of pods that wait.
  [[nodiscard]] bool keeps_room() const { return earmarks_.has_value(); }
  // The pod goes to that node, which takes it. Error: as ClusterState::Reserve.
  Status PutOn(const PodRequest& pod, NodeIndex node);
  // What Put does where no node takes the pod; who does not come again is forgotten after a while.
  void StandInLine(const PodRequest& pod, Instant now, WallTime arrived);
  // Whether the last Put found room that is kept for others.
  [[nodiscard]] bool was_kept_away() const { return was_kept_away_; }
  // What the last Put took; empty where there was no room.
  [[nodiscard]] const std::optional<Placement>& last() const { return last_; }
  // A pod has ended by itself after so long, as the watch would say it.
  void Learn(const PodRequest& pod, Duration ran, WallTime ended) {
    run_times_.Add(pod, ran, ended);
  }
  // What the server would say of the pod's nodes, after its short list. Requires: as for Put.
  [[nodiscard]] Judgement Look(const PodRequest& pod, Instant now = {});
  // The pods have these places from now on, past all judgement. Those that are there leave their
  // places first, all of them. Error: as ClusterState::Reserve, of the first that does not fit.
  Status Take(std::span<const PodPlacement> pods);
  // What is kept for pods that wait; nullptr: nothing. Until the next call.
  [[nodiscard]] const Reservations* ReservationsNow(Instant now);
  // The pod has ended, as the watch would say it.
  void Remove(const std::string& uid);

  [[nodiscard]] const ClusterState& state() const { return state_; }

 private:
  [[nodiscard]] GroupPlaces GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                                    const PodRequest& pod);
  // One of the nodes that fit.
  [[nodiscard]] NodeIndex Choose(const std::shared_ptr<const Snapshot>& snapshot,
                                 const RequestShape& shape, const Judgement& judged);
  // With what its class wishes for, as the server would read it. Until the next call.
  [[nodiscard]] const PodRequest& WithWishes(const PodRequest& pod);

  Engine& engine_;
  LearnedMix* const mix_;
  const std::size_t nodes_to_score_;
  const WishesByClass classes_;
  const std::optional<EarmarkLimits> earmarks_;
  RunTimeTable run_times_;
  EarmarkLine line_{&run_times_};
  bool was_kept_away_ = false;
  PodRequest with_wishes_;
  NodeDomains domains_;
  TieBreaker ties_;
  Reservations reservations_;
  std::optional<KubeChoice> scheduler_;
  ClusterState state_;
  std::vector<NodeIndex> all_;
  std::optional<Placement> last_;
  std::unordered_set<std::string> waiting_;  // UIDs that found no place: they get no short list
};

}  // namespace berth::replay
