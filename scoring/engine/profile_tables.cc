// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/profile_tables.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "cluster/values/held_bytes.h"
#include "scoring/devices/device_picker.h"
#include "scoring/mig/mig_tables.h"
#include "scoring/priority.h"

namespace berth {
namespace {

const Market* MarketOf(const Profile& profile) {
  for (const Profile::Weighted& weighted : profile.scorers) {
    if (const Market* market = weighted.scorer->market()) return market;
  }
  return nullptr;
}

// Adds the pull to the totals of some candidates, where there is any. weights: the sum of the
// weights of the scorers; weight: that of the pull; positions: those of the candidates in `pull`.
void AddPull(int weights, std::int64_t weight, std::span<const std::size_t> positions,
             std::span<const int> pull, std::span<int> totals) {
  if (pull.empty() || weight <= 0) return;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const std::int64_t sum =
        weights * std::int64_t{totals[i]} + weight * kHundredths * pull[positions[i]];
    totals[i] = static_cast<int>(sum / (weights + weight));
  }
}

}  // namespace

ProfileTables::Policy::Policy(const Profile& of) : profile(of), market(MarketOf(of)) {
  const MutexLock lock(mutex);
  if (market != nullptr) ledger.emplace(*market);
}

std::vector<double> ProfileTables::Policy::outlook() {
  const MutexLock lock(mutex);
  return ledger ? ledger->outlook() : std::vector<double>();
}

void ProfileTables::Policy::SetOutlook(std::vector<double> outlook) {
  const MutexLock lock(mutex);
  if (ledger) ledger->SetOutlook(std::move(outlook));
}

std::vector<double> ProfileTables::Policy::PricesIn(
    const std::shared_ptr<const Snapshot>& snapshot) {
  if (market == nullptr) return {};
  const MutexLock lock(mutex);
  return ledger->PricesIn(snapshot);
}

ProfileTables::ProfileTables(Profiles profiles, const RefreshEffort& effort)
    : profiles_(std::move(profiles)),
      policies_([this] {
        std::vector<std::unique_ptr<Policy>> policies;
        policies.push_back(std::make_unique<Policy>(*profiles_.chosen));
        for (const auto& other : profiles_.others) {
          policies.push_back(std::make_unique<Policy>(*other));
        }
        return policies;
      }()),
      effort_(effort) {}

ProfileTables::ProfileTables(const ProfileTables& like, const RefreshEffort& effort)
    : ProfileTables(like.profiles_, effort) {
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    policies_[i]->SetOutlook(like.policies_[i]->outlook());
  }
}

void ProfileTables::LookAt(const Snapshot& snapshot) {
  for (const auto& policy : policies_) {
    if (policy->market != nullptr) policy->SetOutlook(policy->market->Outlook(snapshot));
  }
}

ProfileTables::Policy& ProfileTables::PolicyOf(const RequestShape& shape) const {
  const Profile* const profile = profiles_.Of(shape.nodes.profile).get();
  return **std::ranges::find_if(policies_, [profile](const std::unique_ptr<Policy>& policy) {
    return &policy->profile == profile;
  });
}

std::shared_ptr<ProfileTables::Entry> ProfileTables::EntryFor(const RequestShape& shape) {
  if (shape.nodes.wishes.empty()) return EntryOf(shape);
  RequestShape without = shape;
  without.nodes.wishes.clear();
  return EntryOf(EvaluationTable::SharesWishes(PolicyOf(shape).profile, without) ? without : shape);
}

std::shared_ptr<ProfileTables::Entry> ProfileTables::EntryOf(const RequestShape& shape) {
  constexpr std::size_t kCopies = 3;  // of the entry, of its table, of the index
  const std::size_t bytes = kCopies * HeldBytes(shape);
  const MutexLock lock(mutex_);
  if (const std::shared_ptr<Entry>* const known = recent_.Touch(shape)) return *known;
  return recent_.Put(shape, std::make_shared<Entry>(PolicyOf(shape), shape), bytes);
}

std::size_t ProfileTables::shape_bytes() {
  const MutexLock lock(mutex_);
  return recent_.bytes();
}

void ProfileTables::Prepare(const std::shared_ptr<const Snapshot>& snapshot, ProfileTables& others,
                            std::size_t most) {
  std::vector<RequestShape> shapes;
  {
    const MutexLock lock(others.mutex_);
    for (const auto& entry : others.recent_) {
      if (shapes.size() == most) break;
      shapes.push_back(*entry.key);
    }
  }
  for (const auto& policy : policies_) (void)policy->PricesIn(snapshot);
  for (auto shape = shapes.rbegin(); shape != shapes.rend(); ++shape) {  // the last one is newest
    const std::shared_ptr<Entry> entry = EntryOf(*shape);
    {
      const MutexLock lock(entry->mutex);
      entry->table.Refresh(snapshot, effort_);
    }
    Complete(*entry, effort_);
  }
}

bool ProfileTables::NeedsCompleting(const RequestShape& shape) {
  const std::shared_ptr<Entry> entry = EntryFor(shape);
  const Asking asking(*entry);
  const MutexLock lock(entry->mutex);
  return entry->table.waits() && !std::exchange(entry->completes, true);
}

void ProfileTables::Complete(const RequestShape& shape) { Complete(*EntryFor(shape), effort_); }

void ProfileTables::Complete(Entry& entry, const RefreshEffort& effort) {
  for (bool waits = true; waits;) {
    while (entry.asked > 0) std::this_thread::yield();
    const MutexLock lock(entry.mutex);
    entry.table.Continue(effort);
    waits = entry.table.waits();
    entry.completes = waits;
  }
}

std::vector<Reason> ProfileTables::Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                          const RequestShape& shape,
                                          std::span<const NodeIndex> candidates) {
  const std::shared_ptr<Entry> entry = EntryFor(shape);
  const Asking asking(*entry);
  const MutexLock lock(entry->mutex);
  entry->table.Refresh(snapshot, effort_);
  std::vector<Reason> reasons(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    reasons[i] = entry->table.reason(candidates[i]);
  }
  return reasons;
}

std::vector<std::uint8_t> ProfileTables::Prioritize(const std::shared_ptr<const Snapshot>& snapshot,
                                                    const RequestShape& shape,
                                                    std::span<const NodeIndex> candidates,
                                                    std::span<const int> pull) {
  const std::shared_ptr<Entry> entry = EntryFor(shape);
  const Asking asking(*entry);
  std::vector<std::size_t> positions(candidates.size());  // of the fitting candidates
  std::vector<NodeIndex> fitting(candidates.size());
  std::vector<int> totals, emptiness;
  int weights = 0;
  const Profile& profile = entry->policy.profile;
  const std::vector<double> prices = entry->policy.PricesIn(snapshot);
  {
    const MutexLock lock(entry->mutex);
    entry->table.Refresh(snapshot, effort_);
    // Without a branch per node, as in EvaluationTable::Fitting.
    std::size_t count = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      positions[count] = i;
      fitting[count] = candidates[i];
      count +=
          entry->table.reason(candidates[i]) == Reason::kFits ? std::size_t{1} : std::size_t{0};
    }
    positions.resize(count);
    fitting.resize(count);
    if (profile.ties == TieRule::kFirst) {
      std::ranges::sort(positions, {}, [&](std::size_t i) { return candidates[i]; });
      std::ranges::sort(fitting);
    }
    totals = entry->table.Totals(fitting, prices, entry->WishesOf(shape));
    emptiness = entry->table.Emptiness(fitting);
    weights = entry->table.weights(entry->WishesOf(shape));
  }
  AddPull(weights, profile.locality_weight, positions, pull, totals);
  const std::vector<std::uint8_t> ranked =
      emptiness.empty() ? ToPriorities(totals, profile.ties) : ToPriorities(totals, emptiness);
  std::vector<std::uint8_t> priorities(candidates.size(), 0);
  for (std::size_t i = 0; i < ranked.size(); ++i) priorities[positions[i]] = ranked[i];
  return priorities;
}

std::vector<NodeIndex> ProfileTables::Best(const std::shared_ptr<const Snapshot>& snapshot,
                                           const RequestShape& shape) {
  const std::shared_ptr<Entry> entry = EntryFor(shape);
  const Asking asking(*entry);
  const std::vector<double> prices = entry->policy.PricesIn(snapshot);
  const MutexLock lock(entry->mutex);
  entry->table.Refresh(snapshot, effort_);
  const std::vector<NodeIndex> fitting = entry->table.Fitting();
  if (fitting.empty()) return {};
  const std::vector<int> totals = entry->table.Totals(fitting, prices, entry->WishesOf(shape));
  const std::vector<int> emptiness = entry->table.Emptiness(fitting);
  const auto rank = [&](std::size_t i) {
    return LevelRank(totals[i], emptiness.empty() ? 0 : emptiness[i]);
  };
  std::int64_t best = rank(0);
  for (std::size_t i = 1; i < fitting.size(); ++i) best = std::max(best, rank(i));
  std::vector<NodeIndex> result;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    if (rank(i) != best) continue;
    result.push_back(fitting[i]);
    if (entry->policy.profile.ties == TieRule::kFirst) break;
  }
  return result;
}

tl::expected<Placement, Reason> ProfileTables::PlaceOn(
    const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape, NodeIndex node) {
  // The claim may have been observed by now, and hold the last devices of the node.
  if (GetsMigByClaim(snapshot->node(node), shape)) {
    return PlacementFor(snapshot->node(node), shape, {});
  }
  const std::shared_ptr<Entry> entry = EntryFor(shape);
  const Asking asking(*entry);
  const std::vector<double> prices = entry->policy.PricesIn(snapshot);
  const MutexLock lock(entry->mutex);
  entry->table.Refresh(snapshot, effort_);
  if (entry->table.reason(node) != Reason::kFits) {
    return tl::unexpected(entry->table.reason(node));
  }
  return PlacementFor(snapshot->node(node), shape, entry->table.choice(node, prices));
}

PlanTable ProfileTables::TableFor(const std::shared_ptr<ProfileTables>& tables,
                                  const std::shared_ptr<const Snapshot>& snapshot,
                                  const RequestShape& shape) {
  const std::shared_ptr<Entry> entry = tables->EntryFor(shape);
  const Asking asking(*entry);
  std::vector<double> prices = entry->policy.PricesIn(snapshot);
  const MutexLock lock(entry->mutex);
  entry->table.Refresh(snapshot, tables->effort_);
  return PlanTable(tables, snapshot, shape, entry->table, std::move(prices));
}

void PlanTable::Follow(const std::shared_ptr<const Snapshot>& snapshot) {
  table_.Refresh(snapshot);
  snapshot_ = snapshot;
}

std::vector<std::int64_t> PlanTable::Ranks(std::span<const NodeIndex> candidates,
                                           std::span<const int> pull, int locality_weight) {
  std::span<const TraitWish> wishes;
  if (table_.takes_wishes()) wishes = shape_.nodes.wishes;
  std::vector<int> totals = table_.Totals(candidates, prices_, wishes);
  const std::vector<std::size_t> positions = UpTo(candidates.size());
  AddPull(table_.weights(wishes), locality_weight, positions, pull, totals);
  const std::vector<int> emptiness = table_.Emptiness(candidates);
  std::vector<std::int64_t> ranks(candidates.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = LevelRank(totals[i], emptiness.empty() ? 0 : emptiness[i]);
  }
  return ranks;
}

Placement PlanTable::PlaceOn(NodeIndex node) {
  return PlacementFor(snapshot_->node(node), shape_, table_.choice(node, prices_));
}

}  // namespace berth
