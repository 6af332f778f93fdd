// SPDX-License-Identifier: Apache-2.0
//
// EnginePlacer: decides with the engine in this process, on the full scale of scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/replay/replay.h"
#include "cluster/cluster_state.h"
#include "scoring/engine.h"

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
  // Requires: the engine and the mix outlive the placer. mix: what is learned; nullptr: nothing is.
  EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed,
               LearnedMix* mix = nullptr);

  // Hear, then Put.
  Result<bool> Place(const PodRequest& pod) override;

  // A pod has arrived: told once, before the first attempt to place it.
  void Hear(const PodRequest& pod);
  // Where it is now, as an index into the snapshot; empty when there is no room.
  Result<std::optional<NodeIndex>> Put(const PodRequest& pod);
  // The pod has ended, as the watch would say it.
  void Remove(const std::string& uid);

  [[nodiscard]] const ClusterState& state() const { return state_; }

 private:
  Engine& engine_;
  LearnedMix* const mix_;
  TieBreaker ties_;
  ClusterState state_;
};

}  // namespace berth::replay
