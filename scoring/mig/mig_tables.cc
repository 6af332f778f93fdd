// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace berth {
namespace {

// A function of products, remembered.
class Memo {
 public:
  using Tables = std::shared_ptr<const MigTables>;

  // Nothing if they were not requested yet.
  std::optional<Tables> Find(const std::shared_ptr<const MigProduct>& product)
      BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return Known(product);
  }

  // Makes them without the lock, so that requests for another product do not wait. Two requests for
  // the same product at once both make them, and get the same.
  Tables Of(const std::shared_ptr<const MigProduct>& product) BERTH_EXCLUDES(mutex_) {
    if (auto known = Find(product)) return *std::move(known);
    auto made = MigTables::Make(*product);
    const MutexLock lock(mutex_);
    if (auto known = Known(product)) return *std::move(known);
    // A product that no longer exists may have had the address of this one.
    std::erase_if(entries_, [](const Entry& entry) { return !Lives(entry); });
    entries_.push_back({product.get(), product, product.use_count() == 0, made ? *made : nullptr});
    return entries_.back().tables;
  }

 private:
  struct Entry {
    const MigProduct* product;
    std::weak_ptr<const MigProduct> owner;
    bool for_ever;  // of the catalogue: it has no owner
    Tables tables;  // nullptr: there are too many layouts
  };
  static bool Lives(const Entry& entry) { return entry.for_ever || !entry.owner.expired(); }

  std::optional<Tables> Known(const std::shared_ptr<const MigProduct>& product)
      BERTH_REQUIRES(mutex_) {
    for (const Entry& entry : entries_) {
      if (entry.product == product.get() && Lives(entry)) return entry.tables;
    }
    return std::nullopt;
  }

  Mutex mutex_;
  std::vector<Entry> entries_ BERTH_GUARDED_BY(mutex_);
};

Memo& AllTables() {
  static Memo memo;
  return memo;
}

bool IsPlain(const MigRow& row) { return row.profile.extension == MigExtension::kNone; }

// Of a row of the grid of 8 units, per unit of its size: now, and once half have left. Only sums of
// them mean something: what 1g of double memory has beyond 2g is the pair of units 6 and 7.
struct GridWeight {
  int compute_slices, memory_units;
  double now, half_left;
};
constexpr std::array<GridWeight, 6> kGridOf8 = {{{1, 1, 3.0, 1.3},
                                                 {1, 2, 1.4, 2.6},
                                                 {2, 2, -0.8, -0.7},
                                                 {3, 4, 1.8, 0.6},
                                                 {4, 4, 1.0, 1.1},
                                                 {7, 8, 1.8, 0.6}}};

// Worth per horizon with exactly these instances there: [horizon][state].
using Tables = std::vector<std::vector<double>>;

Tables WorthAsItIs(const MigStates& states, const MigWeights& weights) {
  Tables tables;
  for (const MigHorizon& horizon : weights) {
    std::vector<double>& table = tables.emplace_back();
    for (int state = 0; state < states.size(); ++state) {
      double worth = 0;
      for (std::size_t row = 0; row < horizon.weight.size(); ++row) {
        const MigSet possible =
            states.Addable(state) & states.product().PlacementsOf(static_cast<int>(row));
        worth += horizon.weight[row] * std::popcount(possible);
      }
      table.push_back(worth);
    }
  }
  return tables;
}

}  // namespace

Result<std::shared_ptr<const MigTables>> MigTables::Make(const MigProduct& product) {
  BERTH_TRY(MigStates states, MigStates::Of(product));
  return std::make_shared<const MigTables>(std::move(states));
}

double MigTables::LossGpus(MigSet taken, int placement) const {
  const int state = states_.IndexOf(taken);
  const double whole = potential_.worth(0);
  if (state == MigStates::kNone || whole <= 0) return 0;
  return static_cast<double>(potential_.Loss(state, placement)) / 1e6 / whole;
}

std::shared_ptr<const MigTables> MigTablesOf(const std::shared_ptr<const MigProduct>& product) {
  return AllTables().Of(product);
}

bool HasMigTables(const std::shared_ptr<const MigProduct>& product) {
  return AllTables().Find(product).has_value();
}

MigWeights SrcDrainWeights(const MigProduct& product) {
  // Small enough never to outweigh a unit.
  constexpr double kTieBreak = 1e-3;
  MigWeights weights = {{1, {}}, {0.5, {}}};
  for (const MigRow& row : product.rows()) {
    const double size = IsPlain(row) ? row.memory_units : 0;
    weights[0].weight.push_back(size);
    weights[1].weight.push_back(kTieBreak * size);
  }
  return weights;
}

MigWeights BerthWeights(const MigProduct& product) {
  MigWeights weights = {{1, {}}, {0.5, {}}};
  for (const MigRow& row : product.rows()) {
    const auto found = std::ranges::find_if(kGridOf8, [&](const GridWeight& of) {
      return of.compute_slices == row.profile.compute_slices && of.memory_units == row.memory_units;
    });
    if (product.memory_units() != 8 || found == kGridOf8.end()) return SrcDrainWeights(product);
    const double size = IsPlain(row) ? row.memory_units : 0;
    weights[0].weight.push_back(size * found->now);
    weights[1].weight.push_back(size * found->half_left);
  }
  return weights;
}

MigPotential::MigPotential(const MigStates& states, const MigWeights& weights) : states_(&states) {
  for (const MigHorizon& horizon : weights) {
    BERTH_CHECK(horizon.weight.size() == states.product().rows().size());
  }
  const Tables as_it_is = WorthAsItIs(states, weights);
  for (int state = 0; state < states.size(); ++state) {
    const MigSet all = states.set(state);
    const int instances = std::popcount(all);
    double worth = 0;
    for (MigSet stay = all;; stay = (stay - 1) & all) {
      const auto rest = static_cast<std::size_t>(states.IndexOf(stay));
      const int staying = std::popcount(stay);
      for (std::size_t h = 0; h < weights.size(); ++h) {
        const double keep = weights[h].keep;
        worth +=
            std::pow(keep, staying) * std::pow(1 - keep, instances - staying) * as_it_is[h][rest];
      }
      if (stay == 0) break;
    }
    worth_.push_back(worth);
  }
}

std::int64_t MigPotential::Loss(int state, int placement) const {
  return std::llround((worth(state) - worth(states_->With(state, placement))) * 1e6);
}

}  // namespace berth
