// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace berth {
namespace {

// One device and its possible rows, the preferred first.
struct Device {
  std::vector<int> rows;
  std::optional<MigProfile> name;  // as the pod has it: a row may have several
};

struct MigStart {
  MigSlot slot;
  double loss_gpus = 0;
  int free_units = 0;  // of the GPU
};

class MigPlanner {
 public:
  MigPlanner(const MigSpec& spec, const MigUse& use) : spec_(spec), use_(use) {
    if (spec.dynamic && spec.product != nullptr) tables_ = MigTablesOf(spec.product);
  }

  std::optional<MigPlan> Plan(const MigSlices& ask) {
    for (const MigWant& want : ask.wants) {
      for (int i = 0; i < want.count; ++i) {
        if (!Add(want)) return std::nullopt;
      }
    }
    if (spec_.by_claims()) {
      std::ranges::stable_sort(devices_, {}, [](const Device& device) {
        return device.name ? MigProfileName(*device.name) : "";
      });
    } else {
      std::ranges::stable_sort(devices_, {}, [this](const Device& device) {
        return RankOf(*spec_.product, device.rows.front());
      });
    }
    if (!Place(0)) return std::nullopt;
    std::ranges::sort(plan_.grants);
    std::ranges::sort(plan_.slots);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const MigRow& RowAt(int row) const { return spec_.product->row(row); }
  [[nodiscard]] int RowOf(const MigSlot& slot) const {
    return spec_.product->placement(slot.placement).row;
  }

  // Shared devices are only counted, and taken at once.
  bool Add(const MigWant& want) {
    if (const auto stock = use_.NextShared(spec_, want)) {
      use_.TakeShared(*stock);
      plan_.grants.push_back({.profile = *want.profile, .shared = want.shared});
      return true;
    }
    if (want.shared || spec_.gpus.empty()) return false;
    devices_.push_back({RowsFor(*spec_.product, want), want.profile});
    return !devices_.back().rows.empty();
  }

  bool Place(std::size_t device) {
    if (device == devices_.size()) return true;
    // If all following devices are alike, they do not mind which device of a row this one takes.
    const bool any_will_do = devices_.back().rows == devices_[device].rows;
    for (const int row : devices_[device].rows) {
      for (const MigStart& candidate : CandidatesFor(row)) {
        if (++steps_ > kMostSteps) return false;
        use_.Take(candidate.slot);
        if (Place(device + 1)) {
          Keep(candidate, devices_[device]);
          return true;
        }
        use_.Release(candidate.slot);
        if (any_will_do) break;
      }
    }
    return false;
  }

  void Keep(const MigStart& candidate, const Device& device) {
    const MigSlot& slot = candidate.slot;
    plan_.slots.push_back(slot);
    plan_.loss_gpus += candidate.loss_gpus;
    if (spec_.by_claims()) return;
    MigGrant grant{.profile = device.name.value_or(RowAt(RowOf(slot)).profile)};
    if (spec_.allocator == MigAllocator::kBerth) {
      grant.gpu = spec_.gpus[slot.gpu].index;
      grant.start = spec_.product->placement(slot.placement).start;
    }
    plan_.grants.push_back(grant);
  }

  // The best first.
  [[nodiscard]] std::vector<MigStart> CandidatesFor(int row) const {
    if (spec_.by_claims()) return InTurn(row);
    if (spec_.allocator != MigAllocator::kBerth) {
      const auto slot = use_.NextSlot(spec_, row);
      return slot ? std::vector{CandidateAt(*slot)} : std::vector<MigStart>();
    }
    std::vector<MigStart> candidates;
    for (std::size_t gpu = 0; gpu < spec_.gpus.size(); ++gpu) {
      if (IsLikeAnEarlierOne(gpu)) continue;
      MigSet free = spec_.Free(gpu, use_.taken()[gpu]) & spec_.product->PlacementsOf(row);
      for (; free != 0; free &= free - 1) {
        candidates.push_back(CandidateAt({gpu, std::countr_zero(free)}));
      }
    }
    std::ranges::stable_sort(candidates, {}, [](const MigStart& candidate) {
      return std::pair(candidate.loss_gpus, candidate.free_units);
    });
    return candidates;
  }

  // As kube-scheduler's allocator tries them, which also goes back where the rest does not fit.
  [[nodiscard]] std::vector<MigStart> InTurn(int row) const {
    std::vector<MigStart> candidates;
    for (std::size_t gpu = 0; gpu < spec_.gpus.size(); ++gpu) {
      MigSet free = spec_.Free(gpu, use_.taken()[gpu]) & spec_.product->PlacementsOf(row);
      for (; free != 0; free &= free - 1) {
        candidates.push_back(CandidateAt({gpu, std::countr_zero(free)}));
      }
    }
    return candidates;
  }

  [[nodiscard]] bool IsLikeAnEarlierOne(std::size_t gpu) const {
    for (std::size_t earlier = 0; earlier < gpu; ++earlier) {
      if (use_.taken()[earlier] == use_.taken()[gpu] &&
          spec_.gpus[earlier].instances == spec_.gpus[gpu].instances &&
          spec_.gpus[earlier].offered == spec_.gpus[gpu].offered) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] MigStart CandidateAt(const MigSlot& slot) const {
    const MigSet taken = use_.taken()[slot.gpu];
    const int units = spec_.product->memory_units() - std::popcount(spec_.product->UnitsOf(taken));
    return {slot, tables_ == nullptr ? 0 : tables_->LossGpus(taken, slot.placement), units};
  }

  const MigSpec& spec_;
  MigUse use_;
  std::shared_ptr<const MigTables> tables_;
  std::vector<Device> devices_;
  MigPlan plan_;
  int steps_ = 0;
};

bool HasProfile(const MigSpec& spec, const MigWant& want) {
  const auto is_named = [&want](const MigStock& stock) {
    return want.profile == stock.resource.profile && want.shared == stock.resource.shared;
  };
  if (std::ranges::any_of(spec.shared, is_named)) return true;
  if (want.shared || spec.gpus.empty()) return false;
  MigSet there = 0;
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) there |= spec.Free(gpu, 0);
  return std::ranges::any_of(RowsFor(*spec.product, want), [&](int row) {
    return (there & spec.product->PlacementsOf(row)) != 0;
  });
}

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

std::optional<MigPlan> PlanMig(const MigSpec& spec, const MigUse& use, const MigSlices& ask) {
  if (spec.foreign) return std::nullopt;
  return MigPlanner(spec, use).Plan(ask);
}

Reason ReasonOf(MigTrouble trouble) {
  switch (trouble) {
    case MigTrouble::kChanging:
      return Reason::kMigChanging;
    case MigTrouble::kFailed:
      return Reason::kMigFailed;
    case MigTrouble::kInvalid:
      return Reason::kMigInvalid;
    case MigTrouble::kStale:
      return Reason::kMigStale;
    case MigTrouble::kNone:
      break;
  }
  return Reason::kFits;
}

Reason CheckMig(const Node& node, const MigSlices& ask) {
  if (!node.spec().mig.known()) return Reason::kNoMig;
  const MigSpec& spec = *node.spec().mig;
  if (spec.gpus.empty() && spec.shared.empty()) return Reason::kNoMig;
  if (spec.foreign) return Reason::kMigForeign;
  // The kubelet assigns the resources that the containers name, and these containers name none.
  if (!ask.by_name() && (!spec.dynamic || spec.by_claims())) return Reason::kMigByNameOnly;
  if (ask.by_name() && !spec.takes_names()) return Reason::kMigByNeedOnly;
  for (const MigWant& want : ask.wants) {
    if (!HasProfile(spec, want)) return Reason::kNoMigProfile;
  }
  if (PlanMig(spec, node.mig(), ask)) return Reason::kFits;
  return PlanMig(spec, MigUse(spec), ask) ? Reason::kMigBusy : Reason::kTooFewMig;
}

bool GetsMigByClaim(const Node& node, const RequestShape& shape) {
  return shape.mig() != nullptr && node.spec().mig.known() && node.spec().mig->by_claims();
}

}  // namespace berth
