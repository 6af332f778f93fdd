// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "scoring/claims/claim_question.h"
#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"

namespace berth {
namespace {

// Bounds of the exact search; a node of 8 GPUs stays within them, one of 16 mostly.
constexpr std::size_t kMostUnits = 64;          // units are bits of a mask
constexpr std::size_t kMostSharers = 12;        // on one GPU: 2^12 subsets
constexpr int kMostTried = 6;                   // the same where a set is a search for devices
constexpr std::uint64_t kMostGpuSets = 13'000;  // 8 of 16 GPUs

using Mask = std::uint64_t;  // of units

constexpr Mask Bit(std::size_t i) { return Mask{1} << i; }

// Pods that are evicted together: a single one, or a gang.
struct Unit {
  std::vector<const PodRecord*> pods;  // by UID
  int priority = 0;                    // the highest
  std::int64_t priority_sum = 0;
  std::int64_t lost = 0;   // work, in thousandths of GPU-minutes
  std::int64_t milli = 0;  // GPU compute that they have
  bool is_gang = false;
  bool budgeted = false;
};

struct Cost {
  int pods = 0;
  std::int64_t priority_sum = 0;
  std::int64_t lost = 0;
  std::int64_t milli = 0;
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

// Whether set a comes before set b: that of the first unit in which they differ.
bool HasLowerUids(Mask a, Mask b) {
  const Mask differ = a ^ b;
  return differ != 0 && (a & (differ & (~differ + 1))) != 0;
}

std::uint64_t Combinations(std::uint64_t n, std::uint64_t k) {
  std::uint64_t result = 1;
  for (std::uint64_t i = 1; i <= k && result <= kMostGpuSets; ++i)
    result = result * (n - k + i) / i;
  return result;
}

// How many more pods of each budget may be evicted after the given ones.
class Allowance {
 public:
  Allowance(std::span<const PodDisruptionBudget> budgets, const Node& node,
            std::span<const std::string> given)
      : budgets_(budgets), left_(budgets.size()) {
    for (std::size_t b = 0; b < budgets.size(); ++b) left_[b] = budgets[b].disruptions_allowed;
    if (budgets.empty()) return;
    for (const std::string& uid : given) {
      const PodRecord* const held = node.FindPod(uid);
      if (held != nullptr) Spend(*held, left_);
    }
  }

  [[nodiscard]] bool Covers(const Unit& unit) const {
    return std::ranges::any_of(budgets_, [&unit](const PodDisruptionBudget& budget) {
      return std::ranges::any_of(unit.pods,
                                 [&](const PodRecord* held) { return budget.Covers(held->pod); });
    });
  }
  [[nodiscard]] bool Allows(std::span<const Unit* const> units) const {
    std::vector<int> left = left_;
    for (const Unit* unit : units) {
      for (const PodRecord* held : unit->pods) {
        if (!Spend(*held, left)) return false;
      }
    }
    return true;
  }

 private:
  bool Spend(const PodRecord& held, std::vector<int>& left) const {
    bool enough = true;
    for (std::size_t b = 0; b < budgets_.size(); ++b) {
      if (budgets_[b].Covers(held.pod)) enough = --left[b] >= 0 && enough;
    }
    return enough;
  }

  std::span<const PodDisruptionBudget> budgets_;
  std::vector<int> left_;
};

bool FitsAndSuffices(const Node& left, const RequestShape& shape, const NodeSuffices& suffices) {
  return Fits(left, shape) && (!suffices || suffices(left));
}

// The best set among the units of one node, all of which may be evicted.
class Choice {
 public:
  // Requires: units sorted by priority, then UID. The node is without the given victims.
  Choice(const Node& node, const RequestShape& shape, const std::vector<Unit>& units,
         const Allowance& allowance, const NodeSuffices& suffices)
      : node_(node), shape_(shape), units_(units), allowance_(allowance), suffices_(suffices) {}

  // Tries the units up to each priority in turn.
  std::optional<std::vector<const Unit*>> Find() {
    for (count_ = 0; count_ < units_.size();) {
      const int level = units_[count_].priority;
      while (count_ < units_.size() && units_[count_].priority == level) ++count_;
      if (!FitsWithout(All())) continue;
      best_.reset();
      if (!shape_.wants_gpu() && count_ <= kMostUnits) SearchSharers();
      if (shape_.wants_gpu() && node_.unattributed() == 0 && count_ <= kMostUnits) SearchGpus();
      const bool found = best_ && FitsWithout(Of(*best_));
      if (found && !shape_.may_divide()) return Of(*best_);
      auto spared = Spare();  // the search was for one set of GPUs for all containers
      if (found && (!spared || Of(*best_).size() <= spared->size())) return Of(*best_);
      if (spared) return spared;
    }
    return std::nullopt;
  }

 private:
  using Set = std::vector<const Unit*>;

  [[nodiscard]] Set All() const {
    Set set;
    for (std::size_t i = 0; i < count_; ++i) set.push_back(&units_[i]);
    return set;
  }
  [[nodiscard]] Set Of(Mask mask) const {
    Set set;
    for (; mask != 0; mask &= mask - 1) {
      set.push_back(&units_[static_cast<std::size_t>(std::countr_zero(mask))]);
    }
    return set;
  }
  [[nodiscard]] Node Without(const Set& set) const {
    std::vector<const PodRecord*> gone;
    for (const Unit* unit : set) gone.insert(gone.end(), unit->pods.begin(), unit->pods.end());
    return WithoutPods(node_, std::move(gone));
  }

  [[nodiscard]] bool FitsWithout(const Set& set) const {
    return FitsAndSuffices(Without(set), shape_, suffices_);
  }

  void SearchGpus() {
    by_gpu_.assign(node_.gpus().size(), 0);
    for (std::size_t i = 0; i < count_; ++i) {
      for (const PodRecord* held : units_[i].pods) {
        for (const DeviceGrant& grant : held->placement.grants) {
          const GpuSpec* const gpu = node_.spec().FindGpu(grant.gpu);
          if (gpu == nullptr) continue;
          by_gpu_[static_cast<std::size_t>(gpu - node_.spec().gpus.data())] |= Bit(i);
        }
      }
    }
    const Node emptied = Without(All());
    const auto* whole = std::get_if<WholeGpus>(&shape_.gpus);
    const int instead = GpusInsteadOfMig(node_, shape_);
    limited_ = KubeletLimits(node_.spec(), shape_);
    if (whole != nullptr && (limited_ || (whole->count > 1 && shape_.links.limits()))) {
      SearchLinked(emptied, whole->count);
    } else if (whole != nullptr || instead > 0) {
      SearchWhole(emptied, whole != nullptr ? whole->count : instead);
    } else if (shape_.mig() != nullptr && shape_.mig()->count() == 1) {
      SearchMig(shape_.mig()->wants.front());
    }
    if (shape_.is_share() && shape_.gpu_count() == 1) SearchShare();
  }

  // Every set of as many GPUs as are not idle yet, of those that can be made idle.
  void SearchWhole(const Node& emptied, int wanted) {
    std::vector<Mask> takers;  // of the GPUs that can be made idle
    ForEachGpu(AcceptedGpus(node_.spec(), shape_), [&](int gpu) {
      if (IsIdle(node_, gpu)) {
        --wanted;
      } else if (IsIdle(emptied, gpu)) {
        takers.push_back(by_gpu_[static_cast<std::size_t>(gpu)]);
      }
    });
    if (wanted <= 0) return Offer(0);
    const auto more = static_cast<std::size_t>(wanted);
    if (takers.size() < more || Combinations(takers.size(), more) > kMostGpuSets) return;
    Combine(takers, 0, more, 0);
  }

  // Every set of GPUs that are idle or can be made so, and are linked as the pod asks, or given
  // together by the Topology Manager. Requires: known links, since the pod fits the emptied node.
  void SearchLinked(const Node& emptied, int wanted) {
    emptied_ = IdleGpus(emptied);
    const GpuMask free = emptied_ & AcceptedGpus(node_.spec(), shape_);
    const auto size = static_cast<std::size_t>(wanted);
    if (Combinations(static_cast<std::uint64_t>(std::popcount(free)), size) > kMostGpuSets) return;
    CombineLinked(free, 0, wanted, 0);
  }

  void CombineLinked(GpuMask free, GpuMask gpus, int more, Mask chosen) {
    if (best_ && CostOf(chosen) > best_cost_) return;  // a larger set costs no less
    if (more == 0) {
      if (limited_ ? IsGivenWithout(chosen) : node_.spec().links.Satisfies(gpus, shape_.links)) {
        Offer(chosen);
      }
      return;
    }
    for (; std::popcount(free) >= more; free &= free - 1) {
      const auto gpu = static_cast<std::size_t>(std::countr_zero(free));
      const Mask takers = IsIdle(node_, static_cast<int>(gpu)) ? 0 : by_gpu_[gpu];
      CombineLinked(free & (free - 1), gpus | Bit(gpu), more - 1, chosen | takers);
    }
  }

  // Whether the kubelet gives the pod its GPUs once these units have gone.
  [[nodiscard]] bool IsGivenWithout(Mask units) const {
    GpuMask idle = 0;
    ForEachGpu(emptied_, [&](int gpu) {
      const bool is_left = (by_gpu_[static_cast<std::size_t>(gpu)] & ~units) == 0;
      if (is_left || IsIdle(node_, gpu)) idle |= GpuBit(gpu);
    });
    const GpuMask suiting = idle & AcceptedGpus(node_.spec(), shape_);
    return ChooseAligned(node_, idle, suiting, shape_).gpus != 0;
  }

  void Combine(std::span<const Mask> takers, std::size_t from, std::size_t more, Mask chosen) {
    if (best_ && CostOf(chosen) > best_cost_) return;  // a larger set costs no less
    if (more == 0) return Offer(chosen);
    for (std::size_t i = from; i + more <= takers.size(); ++i) {
      Combine(takers, i + 1, more - 1, chosen | takers[i]);
    }
  }

  // Every set of pods with devices of one partitioned GPU, for an ask for one device.
  void SearchMig(const MigWant& want) {
    if (!node_.spec().mig.known() || node_.spec().mig->gpus.empty() || want.shared) return;
    const MigSpec& spec = *node_.spec().mig;
    MigSet will_do = 0;
    for (const int row : RowsFor(*spec.product, want)) will_do |= spec.product->PlacementsOf(row);
    std::map<const PodRecord*, std::size_t> unit_of;
    for (std::size_t i = 0; i < count_; ++i) {
      for (const PodRecord* held : units_[i].pods) unit_of.emplace(held, i);
    }
    const PodRecords pods(node_.pods().begin(), node_.pods().end());
    const auto claims = node_.claims() ? std::span(*node_.claims()) : std::span<const ClaimedGpu>();
    const auto slots = SlotsByPod(spec, pods, claims);
    std::vector<MigSet> claimed(spec.gpus.size());
    for (const MigSlot& slot : SlotsOfClaims(spec, claims)) {
      claimed[slot.gpu] |= MigSet{1} << slot.placement;
    }
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
      MigSet for_good = claimed[gpu];
      std::vector<MigSet> held(count_);  // by unit
      Mask takers = 0;
      for (std::size_t pod = 0; pod < pods.size(); ++pod) {
        const auto unit = unit_of.find(pods[pod].get());
        for (const MigSlot& slot : slots[pod]) {
          if (slot.gpu != gpu) continue;
          (unit == unit_of.end() ? for_good : held[unit->second]) |= MigSet{1} << slot.placement;
          if (unit != unit_of.end()) takers |= Bit(unit->second);
        }
      }
      if (std::popcount(takers) > static_cast<int>(kMostSharers)) continue;
      for (Mask set = takers;; set = (set - 1) & takers) {
        MigSet taken = for_good;
        for (Mask stay = takers & ~set; stay != 0; stay &= stay - 1) {
          taken |= held[static_cast<std::size_t>(std::countr_zero(stay))];
        }
        if ((spec.Free(gpu, taken) & will_do) != 0) Offer(set);
        if (set == 0) break;
      }
    }
  }

  // Every set of those that share one GPU, for a share of one.
  void SearchShare() {
    for (std::size_t gpu = 0; gpu < by_gpu_.size(); ++gpu) {
      const auto choice = ShareOn(node_, static_cast<int>(gpu), shape_);
      const Mask sharers = by_gpu_[gpu];
      if (!choice || std::popcount(sharers) > static_cast<int>(kMostSharers)) continue;
      for (Mask set = sharers;; set = (set - 1) & sharers) {
        if (HasFreeWithout(gpu, set, *choice)) Offer(set);
        if (set == 0) break;
      }
    }
  }

  // Every set of those whose claims have one device, or parts of it.
  void SearchSharers() {
    std::map<std::string_view, Mask> by_device;
    for (const HeldByPod& held : GpusByPod(node_)) {
      for (std::size_t i = 0; i < count_; ++i) {
        const auto is_it = [&held](const PodRecord* pod) { return pod->pod.id.uid == held.uid; };
        if (std::ranges::none_of(units_[i].pods, is_it)) continue;
        for (const ClaimedGpu* const device : held.devices) by_device[device->device] |= Bit(i);
      }
    }
    for (const auto& [device, sharers] : by_device) {
      if (std::popcount(sharers) > kMostTried || !FitsWithout(Of(sharers))) continue;
      for (Mask set = sharers; set != 0; set = (set - 1) & sharers) {
        const Cost cost = CostOf(set);
        if (best_ && cost > best_cost_) continue;
        if (FitsWithout(Of(set))) Offer(set);
      }
    }
  }

  [[nodiscard]] bool HasFreeWithout(std::size_t gpu, Mask set, const DeviceChoice& choice) const {
    GpuFree free = node_.gpus()[gpu];
    const GpuMask kept = node_.KeptFrom(shape_, [&](const PodRecord& pod) {
      return std::ranges::none_of(
          Of(set), [&pod](const Unit* unit) { return std::ranges::count(unit->pods, &pod) > 0; });
    });
    if ((kept & GpuBit(static_cast<int>(gpu))) != 0) return false;
    for (; set != 0; set &= set - 1) {
      for (const PodRecord* held : units_[static_cast<std::size_t>(std::countr_zero(set))].pods) {
        for (const DeviceGrant& grant : held->placement.grants) {
          if (grant.gpu != static_cast<int>(gpu)) continue;
          free.milli += grant.milli;
          free.memory_mib += grant.memory_mib;
          --free.users;
        }
      }
    }
    return choice.milli <= free.milli && HasPlace(node_.spec().gpus[gpu], free) &&
           (choice.memory_mib == 0 || choice.memory_mib <= free.memory_mib);
  }

  [[nodiscard]] Cost CostOf(Mask mask) const {
    Cost cost;
    for (; mask != 0; mask &= mask - 1) {
      const Unit& unit = units_[static_cast<std::size_t>(std::countr_zero(mask))];
      cost.pods += static_cast<int>(unit.pods.size());
      cost.priority_sum += unit.priority_sum;
      cost.lost += unit.lost;
      cost.milli += unit.milli;
    }
    return cost;
  }

  void Offer(Mask mask) {
    const Cost cost = CostOf(mask);
    if (best_ && (cost > best_cost_ || (cost == best_cost_ && !HasLowerUids(mask, *best_)))) return;
    if (!allowance_.Allows(Of(mask))) return;
    best_ = mask;
    best_cost_ = cost;
  }

  // All are evicted, then one after the other is reprieved if the pod still fits.
  std::optional<Set> Spare() const {
    Set order = All();
    std::ranges::stable_sort(order, std::ranges::greater{}, [](const Unit* unit) {
      return std::tuple(unit->is_gang, unit->budgeted, unit->priority);
    });
    Set set = order;
    for (const Unit* unit : order) {
      Set fewer = set;
      std::erase(fewer, unit);
      if (FitsWithout(fewer)) set = std::move(fewer);
    }
    if (!allowance_.Allows(set)) return std::nullopt;
    return set;
  }

  const Node& node_;
  const RequestShape& shape_;
  const std::vector<Unit>& units_;
  const Allowance& allowance_;
  const NodeSuffices& suffices_;
  std::size_t count_ = 0;  // units that are looked at
  std::vector<Mask> by_gpu_;
  bool limited_ = false;  // by a Topology Manager
  GpuMask emptied_ = 0;   // idle once all units have gone
  std::optional<Mask> best_;
  Cost best_cost_;
};

std::chrono::minutes SinceCheckpoint(const PodRequest& pod, WallTime now) {
  if (!pod.checkpointed) return kMostLost;
  const auto since = std::chrono::floor<std::chrono::minutes>(now - *pod.checkpointed);
  return std::clamp(since, std::chrono::minutes(0), kMostLost);
}

Unit UnitOf(std::vector<const PodRecord*> pods, const Allowance& allowance, WallTime now) {
  Unit unit;
  unit.pods = std::move(pods);
  unit.priority = unit.pods.front()->pod.priority;
  for (const PodRecord* held : unit.pods) {
    unit.priority = std::max(unit.priority, held->pod.priority);
    unit.priority_sum += held->pod.priority;
    unit.milli += GpuMilliOf(*held);
    unit.lost += WorkLost(*held, now);
  }
  unit.is_gang = !unit.pods.front()->pod.gang.empty();
  unit.budgeted = allowance.Covers(unit);
  return unit;
}

std::size_t MembersOn(const Node& node, const GangId& gang) {
  return static_cast<std::size_t>(std::ranges::count_if(
      node.pods(), [&gang](const auto& held) { return held->pod.gang.id == gang; }));
}

// What may be evicted from the node beside the given victims (`left` is without them), sorted by
// priority, then UID; gangs only if they are wanted.
std::vector<Unit> UnitsOf(const Node& node, const Node& left, const PodRequest& pod,
                          const Allowance& allowance, const EvictionLimits& limits, bool gangs) {
  std::vector<Unit> units;
  std::map<GangId, std::vector<const PodRecord*>> by_gang;
  for (const auto& held : left.pods()) {
    if (!MayBeEvictedFor(*held, pod)) continue;
    if (!held->pod.gang.empty()) {
      by_gang[held->pod.gang.id].push_back(held.get());
    } else if (held->pod.shape.wants_gpu()) {
      units.push_back(UnitOf({held.get()}, allowance, limits.now));
    }
  }
  for (auto& [gang, members] : by_gang) {
    if (!gangs || gang == pod.gang.id || !limits.gang_size) continue;
    const bool all_may_go = members.size() == MembersOn(left, gang);
    if (!all_may_go) continue;
    if (!limits.Ends(gang) && MembersOn(node, gang) != limits.gang_size(gang)) continue;
    units.push_back(UnitOf(std::move(members), allowance, limits.now));
  }
  std::erase_if(units, [&allowance](const Unit& unit) {
    const Unit* const alone = &unit;
    return !allowance.Allows(std::span(&alone, 1));
  });
  std::ranges::sort(units, {}, [](const Unit& unit) {
    return std::pair<int, std::string_view>(unit.priority, unit.pods.front()->pod.id.uid);
  });
  return units;
}

}  // namespace

bool MayBeEvictedFor(const PodRecord& held, const PodRequest& pod) {
  return held.state == PodState::kBound && held.pod.priority < pod.priority;
}

std::int64_t GpuMilliOf(const PodRecord& held) {
  std::int64_t milli = 0;
  if (held.unattributed()) return std::int64_t{held.pod.shape.gpu_count()} * kMilliPerGpu;
  for (const DeviceGrant& grant : held.placement.grants) milli += grant.milli;
  for (const MigGrant& grant : held.placement.mig) {
    milli += grant.profile.compute_slices * kMilliPerGpu / 8;
  }
  return milli;
}

std::int64_t WorkLost(const PodRecord& held, WallTime now) {
  return GpuMilliOf(held) * SinceCheckpoint(held.pod, now).count();
}

Node WithoutPods(const Node& node, std::span<const std::string> uids) {
  std::vector<const PodRecord*> gone;
  for (const std::string& uid : uids) {
    if (const PodRecord* const held = node.FindPod(uid)) gone.push_back(held);
  }
  return WithoutPods(node, std::move(gone));
}

Node WithoutPods(const Node& node, std::vector<const PodRecord*> gone) {
  std::ranges::sort(gone);
  return node.Without(
      [&gone](const PodRecord& held) { return std::ranges::binary_search(gone, &held); });
}

bool BreaksGang(const Node& node, std::span<const std::string> uids, const EvictionLimits& limits) {
  if (!limits.gang_size) return false;
  std::map<GangId, std::vector<const PodRecord*>> going;
  for (const std::string& uid : uids) {
    const PodRecord* const held = node.FindPod(uid);
    const bool ends = held == nullptr || held->leaving;  // in any case
    if (ends || held->pod.gang.empty() || limits.Ends(held->pod.gang.id)) continue;
    going[held->pod.gang.id].push_back(held);
  }
  return std::ranges::any_of(going, [&limits](const auto& gang) {
    const std::optional<int>& minimum = gang.second.front()->pod.gang.minimum;
    const std::size_t there = limits.gang_size(gang.first);
    const std::size_t left = there - std::min(there, gang.second.size());
    if (left == 0 || (minimum && *minimum <= 1)) return false;
    return !minimum || std::cmp_less(left, *minimum);
  });
}

std::vector<std::string> EvictableFrom(const Node& node, const PodRequest& pod,
                                       const EvictionLimits& limits) {
  const Allowance allowance(limits.budgets, node, {});
  std::vector<Unit> units = UnitsOf(node, node, pod, allowance, limits, true);
  for (const auto& held : node.pods()) {
    if (!MayBeEvictedFor(*held, pod) || held->pod.shape.wants_gpu()) continue;
    if (held->pod.gang.empty()) units.push_back(UnitOf({held.get()}, allowance, limits.now));
  }
  std::ranges::stable_sort(units, {}, &Unit::priority);
  std::vector<const Unit*> chosen;
  std::vector<std::string> uids;
  for (const Unit& unit : units) {
    chosen.push_back(&unit);
    if (!allowance.Allows(chosen)) {
      chosen.pop_back();
      continue;
    }
    for (const PodRecord* held : unit.pods) uids.push_back(held->pod.id.uid);
  }
  return uids;
}

std::optional<std::vector<std::string>> AddedVictims(const Node& node, const PodRequest& pod,
                                                     std::span<const std::string> given,
                                                     const EvictionLimits& limits,
                                                     const NodeSuffices& suffices) {
  const Reason as_is = given.empty() ? FirstObjection(node, pod.shape) : Reason::kFits;
  if (VerdictOf(as_is) == Verdict::kUnresolvable) return std::nullopt;
  if (given.empty() && as_is == Reason::kFits && (!suffices || suffices(node))) {
    return std::vector<std::string>();
  }
  const bool may_have_more = pod.shape.wants_gpu() || suffices;
  const bool has_more = may_have_more && node.lowest_priority() < pod.priority;
  if (given.empty() && !has_more) return std::nullopt;
  const Node left = WithoutPods(node, given);
  if (FitsAndSuffices(left, pod.shape, suffices)) return std::vector<std::string>();
  if (!has_more || AfterEvictions(left, pod, Reason::kGpusBusy) != Reason::kGpusBusy) {
    return std::nullopt;
  }
  const Allowance allowance(limits.budgets, node, given);
  for (const bool gangs : {false, true}) {
    const std::vector<Unit> units = UnitsOf(node, left, pod, allowance, limits, gangs);
    const auto chosen = Choice(left, pod.shape, units, allowance, suffices).Find();
    if (!chosen) continue;
    std::vector<std::string> uids;
    for (const Unit* unit : *chosen) {
      for (const PodRecord* held : unit->pods) uids.push_back(held->pod.id.uid);
    }
    std::ranges::sort(uids);
    return uids;
  }
  return std::nullopt;
}

Reason AfterEvictions(const Node& node, const PodRequest& pod, Reason reason) {
  if (VerdictOf(reason) != Verdict::kUnschedulable) return reason;
  if (!pod.may_preempt || node.lowest_priority() >= pod.priority) return HeldForGood(reason);
  const Node emptied =
      node.Without([&pod](const PodRecord& held) { return MayBeEvictedFor(held, pod); });
  return Fits(emptied, pod.shape) ? reason : HeldForGood(reason);
}

}  // namespace berth
