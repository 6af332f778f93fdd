// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/mig_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "scoring/mig/mig_tables.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {
namespace {

constexpr std::array<MigPolicyName, 10> kMigPolicies = {
    {{"berth", MigPolicy::kBerth},
     {"src-drain", MigPolicy::kSrcDrain},
     {"first-fit", MigPolicy::kFirstFit},
     {"best-fit", MigPolicy::kBestFit},
     {"load-balancing", MigPolicy::kLoadBalancing},
     {"hami", MigPolicy::kHami},
     {"dra", MigPolicy::kDra},
     {"instaslice", MigPolicy::kInstaslice},
     {"mfi", MigPolicy::kMfi},
     {"mfi-partial", MigPolicy::kMfiPartial}}};

// Sizes of the blocked starts of every profile that is no larger than what is free.
std::int64_t Fragmentation(const MigStates& states, int state, bool partial) {
  const MigProduct& product = states.product();
  const MigUnits taken = product.UnitsOf(states.set(state));
  const int free = product.memory_units() - std::popcount(taken);
  std::int64_t sum = 0;
  for (MigSet left = states.placements() & ~states.Addable(state); left != 0; left &= left - 1) {
    const auto placement = static_cast<std::size_t>(std::countr_zero(left));
    const MigUnits units = product.placements()[placement].units;
    const int size = std::popcount(units);
    if (size > free || (partial && (units & ~taken) == 0)) continue;
    sum += size;
  }
  return sum;
}

}  // namespace

std::span<const MigPolicyName> MigPolicies() { return kMigPolicies; }

std::string_view MigPolicyNameOf(MigPolicy policy) {
  return std::ranges::find(kMigPolicies, policy, &MigPolicyName::policy)->name;
}

Result<MigPolicy> ParseMigPolicy(std::string_view name) {
  const auto row = std::ranges::find(kMigPolicies, name, &MigPolicyName::name);
  if (row != kMigPolicies.end()) return row->policy;
  std::string wanted;
  for (const MigPolicyName& known : kMigPolicies) wanted += std::string(known.name) + ", ";
  return Invalid("want " + wanted + "got \"" + std::string(name) + "\"");
}

MigChooser::MigChooser(MigPolicy policy, const MigStates& states, MigPick pick)
    : policy_(policy),
      states_(&states),
      pick_(pick),
      rows_(states.product().rows().size()),
      placements_(states.product().placements().size()),
      cost_(static_cast<std::size_t>(states.size()) * placements_, 0) {
  switch (policy) {
    case MigPolicy::kBerth:
    case MigPolicy::kSrcDrain:
      RateByPotential();
      break;
    case MigPolicy::kMfi:
    case MigPolicy::kMfiPartial:
      RateByFragmentation(policy == MigPolicy::kMfiPartial);
      break;
    case MigPolicy::kBestFit:
    case MigPolicy::kHami:
      RateByFreeUnits(1);
      break;
    case MigPolicy::kLoadBalancing:
      RateByFreeUnits(-1);
      break;
    case MigPolicy::kFirstFit:
    case MigPolicy::kDra:
    case MigPolicy::kInstaslice:
      break;  // all the same
  }
  ChooseStarts();
}

void MigChooser::RateByPotential() {
  const MigProduct& product = states_->product();
  const MigPotential potential(
      *states_, policy_ == MigPolicy::kBerth ? BerthWeights(product) : SrcDrainWeights(product));
  for (int state = 0; state < states_->size(); ++state) {
    for (MigSet left = states_->Addable(state); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      cost_[static_cast<std::size_t>(state) * placements_ + static_cast<std::size_t>(placement)] =
          potential.Loss(state, placement);
    }
  }
}

void MigChooser::RateByFragmentation(bool partial) {
  std::vector<std::int64_t> fragmentation;
  for (int state = 0; state < states_->size(); ++state) {
    fragmentation.push_back(Fragmentation(*states_, state, partial));
  }
  for (int state = 0; state < states_->size(); ++state) {
    for (MigSet left = states_->Addable(state); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      const auto after = static_cast<std::size_t>(states_->With(state, placement));
      cost_[static_cast<std::size_t>(state) * placements_ + static_cast<std::size_t>(placement)] =
          fragmentation[after] - fragmentation[static_cast<std::size_t>(state)];
    }
  }
}

void MigChooser::RateByFreeUnits(int sign) {
  for (int state = 0; state < states_->size(); ++state) {
    const int taken = std::popcount(states_->product().UnitsOf(states_->set(state)));
    const auto begin =
        cost_.begin() + std::ptrdiff_t{state} * std::ssize(states_->product().placements());
    std::fill_n(begin, placements_, sign * (states_->product().memory_units() - taken));
  }
}

void MigChooser::ChooseStarts() {
  for (int state = 0; state < states_->size(); ++state) {
    for (int row = 0; row < static_cast<int>(rows_); ++row) {
      const MigSet possible = states_->Addable(state) & states_->product().PlacementsOf(row);
      const int first = possible == 0 ? MigStates::kNone : std::countr_zero(possible);
      first_.push_back(static_cast<std::int16_t>(first));
      best_.push_back(static_cast<std::int16_t>(possible == 0 ? first : StartIn(state, row)));
    }
  }
}

int MigChooser::StartIn(int state, int row) const {
  const MigProduct& product = states_->product();
  const auto by_rule = [&](MigStartRule rule) {
    return *MigStartBy(rule, product, states_->set(state), row, states_->placements());
  };
  switch (policy_) {
    case MigPolicy::kBestFit:
    case MigPolicy::kLoadBalancing:
      return by_rule(MigStartRule::kDriver);
    case MigPolicy::kHami:
      return by_rule(MigStartRule::kHighOrLow);
    case MigPolicy::kFirstFit:
    case MigPolicy::kDra:
    case MigPolicy::kInstaslice:
      return by_rule(MigStartRule::kLowest);
    case MigPolicy::kBerth:
    case MigPolicy::kSrcDrain:
    case MigPolicy::kMfi:
    case MigPolicy::kMfiPartial:
      break;
  }
  MigSet left = states_->Addable(state) & product.PlacementsOf(row);
  int best = std::countr_zero(left);
  for (left &= left - 1; left != 0; left &= left - 1) {
    const int placement = std::countr_zero(left);
    if (CostOf(state, placement) < CostOf(state, best)) best = placement;
  }
  return best;
}

std::optional<MigChoice> MigChooser::Choose(const MigFleet& fleet, int row) const {
  const bool by_node = policy_ == MigPolicy::kDra || policy_ == MigPolicy::kInstaslice;
  return by_node || pick_ == MigPick::kNodeFirstFit ? OverNodes(fleet, row)
                                                    : OverStates(fleet, row);
}

std::optional<MigChoice> MigChooser::OverStates(const MigFleet& fleet, int row) const {
  std::optional<MigChoice> best;
  Cost least = 0;
  for (const int state : fleet.present()) {
    const int placement = PlacementIn(state, row);
    if (placement == MigStates::kNone) continue;
    const Cost cost = CostOf(state, placement);
    if (best && cost > least) continue;
    const int gpu = *fleet.GpusIn(state).begin();
    if (best && cost == least && gpu > best->gpu) continue;
    best = MigChoice{gpu, placement};
    least = cost;
  }
  return best;
}

std::optional<MigChoice> MigChooser::OverNodes(const MigFleet& fleet, int row) const {
  std::optional<MigChoice> best;
  Cost least = 0;
  for (int node = 0; node < fleet.nodes(); ++node) {
    const auto taken = FirstFit(fleet, node, row);
    if (!taken) continue;
    const Cost cost = NodeCost(fleet, node, *taken);
    if (best && cost >= least) continue;
    best = taken;
    least = cost;
  }
  return best;
}

std::optional<MigChoice> MigChooser::FirstFit(const MigFleet& fleet, int node, int row) const {
  for (int gpu = fleet.first_gpu(node); gpu < fleet.first_gpu(node + 1); ++gpu) {
    const int placement =
        first_[static_cast<std::size_t>(fleet.state(gpu)) * rows_ + static_cast<std::size_t>(row)];
    if (placement != MigStates::kNone) return MigChoice{gpu, placement};
  }
  return std::nullopt;
}

MigChooser::Cost MigChooser::NodeCost(const MigFleet& fleet, int node,
                                      const MigChoice& taken) const {
  switch (policy_) {
    case MigPolicy::kFirstFit:
      return 0;
    case MigPolicy::kBestFit:
    case MigPolicy::kHami:
      return fleet.free_units(node);
    case MigPolicy::kLoadBalancing:
    case MigPolicy::kInstaslice:
      return -fleet.free_units(node);
    case MigPolicy::kDra:
      return fleet.instances(node);
    case MigPolicy::kBerth:
    case MigPolicy::kSrcDrain:
    case MigPolicy::kMfi:
    case MigPolicy::kMfiPartial:
      break;
  }
  return CostOf(fleet.state(taken.gpu), taken.placement);
}

}  // namespace berth::replay
