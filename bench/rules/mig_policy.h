// SPDX-License-Identifier: Apache-2.0
//
// The policies that can choose a GPU and a placement for a MIG device: Berth's own, and those of
// others, for comparison. The lowest GPU wins a tie.
//
//   berth           least loss of worth by BerthWeights (mig_tables.h)
//   src-drain       least loss by SrcDrainWeights
//   first-fit       the first GPU, the lowest start
//   best-fit        the GPU with the fewest free units, the driver's start (mig_product.h)
//   load-balancing  the GPU with the most free units, the driver's start
//   hami            as best-fit, HAMi's start: its scheduler's binpack policy
//   dra             the node with the fewest instances, then first-fit in it: kube-scheduler, whose
//                   scores know nothing of devices, and its DRA allocator
//   instaslice      the node with the most free units, then first-fit in it
//   mfi             least growth of fragmentation (Zambianco et al., arXiv 2511.18906): the sum,
//                   over profiles no larger than the free units of the GPU, of their size for each
//                   start that is blocked. Read so: every start that cannot be taken is blocked.
//   mfi-partial     the same, read so: only starts with some free units are blocked
//
// If the node's own allocator picks the device (MigPick::kNodeFirstFit), a policy chooses only the
// node: mfi, src-drain and berth by the value of the device that will be taken, best-fit and hami
// the node with the fewest free units, load-balancing the one with the most.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/rules/mig_fleet.h"
#include "topology/mig/mig_states.h"

namespace berth::replay {

enum class MigPolicy : std::uint8_t {
  kBerth,
  kSrcDrain,
  kFirstFit,
  kBestFit,
  kLoadBalancing,
  kHami,
  kDra,
  kInstaslice,
  kMfi,
  kMfiPartial,
};

struct MigPolicyName {
  std::string_view name;
  MigPolicy policy;
};
std::span<const MigPolicyName> MigPolicies();
std::string_view MigPolicyNameOf(MigPolicy policy);

// Error: kInvalidArgument "want berth, src-drain, ..., got TEXT".
Result<MigPolicy> ParseMigPolicy(std::string_view name);

// Who picks the device.
enum class MigPick : std::uint8_t {
  kPolicy,        // the policy: GPU and start
  kNodeFirstFit,  // the node's allocator: its first GPU that has room, the lowest start
};

struct MigChoice {
  int gpu = 0;
  int placement = 0;
  friend bool operator==(const MigChoice&, const MigChoice&) = default;
};

// One policy's evaluation of every change of a GPU, as tables over its states. Building it takes
// some 10 ms for 723 states. Immutable; any number of threads may read.
class MigChooser {
 public:
  // Requires: the states live longer.
  MigChooser(MigPolicy policy, const MigStates& states, MigPick pick = MigPick::kPolicy);

  // Where an instance of that row goes; nullopt where it fits nowhere (no policy refuses what
  // fits). Requires: a fleet of these states. Looks at each state that is present once, at each
  // node where nodes matter.
  [[nodiscard]] std::optional<MigChoice> Choose(const MigFleet& fleet, int row) const;

  // Less is better; comparable among the choices for one row.
  using Cost = std::int64_t;
  [[nodiscard]] Cost CostOf(int state, int placement) const {
    return cost_[static_cast<std::size_t>(state) * placements_ +
                 static_cast<std::size_t>(placement)];
  }
  // The placement that the policy takes on a GPU in that state; MigStates::kNone where none fits.
  [[nodiscard]] int PlacementIn(int state, int row) const {
    return best_[static_cast<std::size_t>(state) * rows_ + static_cast<std::size_t>(row)];
  }

 private:
  void RateByPotential();
  void RateByFragmentation(bool partial);
  void RateByFreeUnits(int sign);
  void ChooseStarts();
  [[nodiscard]] int StartIn(int state, int row) const;
  [[nodiscard]] std::optional<MigChoice> OverStates(const MigFleet& fleet, int row) const;
  [[nodiscard]] std::optional<MigChoice> OverNodes(const MigFleet& fleet, int row) const;
  [[nodiscard]] std::optional<MigChoice> FirstFit(const MigFleet& fleet, int node, int row) const;
  [[nodiscard]] Cost NodeCost(const MigFleet& fleet, int node, const MigChoice& taken) const;

  MigPolicy policy_;
  const MigStates* states_;
  MigPick pick_;
  std::size_t rows_, placements_;
  std::vector<Cost> cost_;           // [state][placement]
  std::vector<std::int16_t> best_;   // [state][row]
  std::vector<std::int16_t> first_;  // [state][row], the lowest start
};

}  // namespace berth::replay
