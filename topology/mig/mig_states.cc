// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_states.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

namespace berth {
namespace {

bool Before(MigSet a, MigSet b) {
  return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b);
}

}  // namespace

Result<MigStates> MigStates::Of(const MigProduct& product, std::span<const int> rows) {
  MigSet placements = 0;
  for (const int row : rows) placements |= product.PlacementsOf(row);
  MigStates states(product, placements);
  if (!states.Enumerate()) {
    return Invalid(product.name() + ": want at most " + std::to_string(kMaxMigStates) +
                   " layouts, got more");
  }
  states.Connect();
  return states;
}

Result<MigStates> MigStates::Of(const MigProduct& product) {
  std::vector<int> rows(product.rows().size());
  std::iota(rows.begin(), rows.end(), 0);
  return Of(product, rows);
}

// Each set is reached once: from the set without its highest placement.
bool MigStates::Enumerate() {
  sets_ = {0};
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    MigSet left = product_->Addable(sets_[i]) & placements_;
    if (sets_[i] != 0) left &= ~(std::bit_floor(sets_[i]) * 2 - 1);
    for (; left != 0; left &= left - 1) sets_.push_back(sets_[i] | (left & (~left + 1)));
    if (sets_.size() > kMaxMigStates) return false;
  }
  std::ranges::sort(sets_, Before);
  return true;
}

void MigStates::Connect() {
  const std::size_t count = sets_.size() * product_->placements().size();
  with_.assign(count, kNone);
  without_.assign(count, kNone);
  for (int state = 0; state < size(); ++state) {
    addable_.push_back(product_->Addable(set(state)) & placements_);
    for (MigSet left = addable_.back(); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      const int next = IndexOf(set(state) | MigSet{1} << placement);
      with_[At(state, placement)] = static_cast<std::int16_t>(next);
      without_[At(next, placement)] = static_cast<std::int16_t>(state);
    }
  }
}

int MigStates::IndexOf(MigSet set) const {
  const auto found = std::ranges::lower_bound(sets_, set, Before);
  return found != sets_.end() && *found == set ? static_cast<int>(found - sets_.begin()) : kNone;
}

}  // namespace berth
