// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_plan.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "scoring/mig/mig_tables.h"

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

}  // namespace

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
