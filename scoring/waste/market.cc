// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/market.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/node/likeness_memo.h"

namespace berth {
namespace {

constexpr double kRounding = 1e-9;
constexpr int kMostPivots = 500;
constexpr int kDrawnDemands = 4;

std::size_t AtLevel(int index) { return static_cast<std::size_t>(index); }

// The revised simplex method; the columns are made as they are needed, by a knapsack over levels.
class CuttingStock {
 public:
  CuttingStock(std::span<const ShareDemand> demand, const Levels& open) : demand_(demand) {
    for (int level = 1; level < kLevels; ++level) {
      if (open[AtLevel(level)] > 0) stock_.push_back(level);
    }
    rows_ = demand.size() + stock_.size();
    inverse_.assign(rows_ * rows_, 0);
    amount_.assign(rows_, 0);
    price_.assign(rows_, 0);
    // At first each share is cut from fresh GPUs with others of its size, and the stock is left.
    for (std::size_t s = 0; s < demand.size(); ++s) {
      const double each = 1.0 / (kLevels / demand[s].level);
      inverse_[s * rows_ + s] = price_[s] = each;
      amount_[s] = demand[s].count * each;
    }
    for (std::size_t l = 0; l < stock_.size(); ++l) {
      const std::size_t row = demand.size() + l;
      inverse_[row * rows_ + row] = 1;
      amount_[row] = open[AtLevel(stock_[l])];
    }
  }

  Levels Solve() {
    for (int step = 0; step < kMostPivots && Improve();) ++step;
    FillKnapsack();
    // More than a GPU only where it ended early: prices so scaled are as sound.
    const double most = std::max(worth_.back(), 1.0);
    for (double& worth : worth_) worth /= most;
    return worth_;
  }

 private:
  // What the best pattern within each level is worth, and which share it begins with (-1: none, so
  // that it is the pattern of the level below).
  void FillKnapsack() {
    worth_[0] = 0;
    for (int level = 1; level <= kLevels; ++level) {
      worth_[AtLevel(level)] = worth_[AtLevel(level - 1)];
      first_[AtLevel(level)] = -1;
      for (std::size_t s = 0; s < demand_.size(); ++s) {
        if (demand_[s].level > level) continue;
        const double with = worth_[AtLevel(level - demand_[s].level)] + price_[s];
        if (with <= worth_[AtLevel(level)] + kRounding) continue;
        worth_[AtLevel(level)] = with;
        first_[AtLevel(level)] = static_cast<int>(s);
      }
    }
  }

  void PutPattern(int level, std::vector<double>& column) const {
    while (level > 0) {
      const int share = first_[AtLevel(level)];
      if (share >= 0) column[AtLevel(share)] += 1;
      level -= share >= 0 ? demand_[AtLevel(share)].level : 1;
    }
  }

  // Brings the column in that saves most; false: none does.
  bool Improve() {
    FillKnapsack();
    double best = -1e-7;
    std::vector<double> column(rows_, 0);
    const auto is_better = [&](double cost) {
      if (cost >= best) return false;
      best = cost;
      std::ranges::fill(column, 0);
      return true;
    };
    // More of a share than is asked, some stock left, a fresh GPU, one of the stock.
    for (std::size_t s = 0; s < demand_.size(); ++s) {
      if (is_better(price_[s])) column[s] = -1;
    }
    for (std::size_t row = demand_.size(); row < rows_; ++row) {
      if (is_better(-price_[row])) column[row] = 1;
    }
    if (is_better(1 - worth_[kLevels])) PutPattern(kLevels, column);
    for (std::size_t l = 0; l < stock_.size(); ++l) {
      const std::size_t row = demand_.size() + l;
      if (!is_better(-price_[row] - worth_[AtLevel(stock_[l])])) continue;
      PutPattern(stock_[l], column);
      column[row] = 1;
    }
    return best < -1e-7 && Pivot(column, best);
  }

  // cost: what one of the column saves, < 0.
  bool Pivot(const std::vector<double>& column, double cost) {
    std::vector<std::size_t> used;  // few
    for (std::size_t i = 0; i < rows_; ++i) {
      if (column[i] != 0) used.push_back(i);
    }
    std::vector<double> change(rows_, 0);
    std::size_t leaves = rows_;
    double most = std::numeric_limits<double>::max();
    for (std::size_t row = 0; row < rows_; ++row) {
      for (const std::size_t i : used) change[row] += inverse_[row * rows_ + i] * column[i];
      if (change[row] <= kRounding) continue;
      const double ratio = std::max(amount_[row], 0.0) / change[row];
      if (leaves != rows_ && (ratio > most || (ratio == most && change[row] <= change[leaves]))) {
        continue;
      }
      most = ratio;
      leaves = row;
    }
    if (leaves == rows_) return false;
    double* const left = inverse_.data() + leaves * rows_;
    for (std::size_t i = 0; i < rows_; ++i) left[i] /= change[leaves];
    for (std::size_t row = 0; row < rows_; ++row) {
      if (row == leaves || std::abs(change[row]) < kRounding) continue;
      amount_[row] -= most * change[row];
      double* const of_row = inverse_.data() + row * rows_;
      for (std::size_t i = 0; i < rows_; ++i) of_row[i] -= change[row] * left[i];
    }
    amount_[leaves] = most;
    for (std::size_t i = 0; i < rows_; ++i) price_[i] += cost * left[i];
    return true;
  }

  const std::span<const ShareDemand> demand_;
  std::vector<int> stock_;  // levels with open GPUs
  std::size_t rows_ = 0;    // one for each demand, then one for each of the stock
  std::vector<double> inverse_, amount_, price_;
  Levels worth_{};
  std::array<int, kLevels + 1> first_{};
};

// By Knuth below 30, above it as a sum of twelve uniform variables.
double DrawPoisson(Random& random, double mean) {
  if (mean > 30) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.Unit();
    return std::max(std::round(mean + std::sqrt(mean) * sum), 0.0);
  }
  double count = -1;
  for (double left = mean; left >= 0; ++count) left += std::log(1 - random.Unit());
  return count;
}

constexpr double kRoomExponent = 8, kRoomLimit = 2;

}  // namespace

Levels WorthOfLevels(std::span<const ShareDemand> demand, const Levels& open) {
  return demand.empty() ? Levels{} : CuttingStock(demand, open).Solve();
}

Levels ExpectedWorthOfLevels(std::span<const ShareDemand> demand, const Levels& open) {
  Levels mean{};
  Random random(1);
  for (int draw = 0; draw < kDrawnDemands; ++draw) {
    std::vector<ShareDemand> drawn(demand.begin(), demand.end());
    for (ShareDemand& each : drawn) each.count = DrawPoisson(random, each.count);
    std::erase_if(drawn, [](const ShareDemand& each) { return each.count <= 0; });
    const Levels worth = WorthOfLevels(drawn, open);
    for (std::size_t level = 0; level < worth.size(); ++level)
      mean[level] += worth[level] / kDrawnDemands;
  }
  return mean;
}

SomeGoods WithoutZeros(std::span<const int> amounts) {
  SomeGoods some;
  for (std::size_t good = 0; good < amounts.size(); ++good) {
    if (amounts[good] != 0) some.emplace_back(static_cast<std::uint16_t>(good), amounts[good]);
  }
  return some;
}

const std::vector<double>& SupplyLedger::PricesIn(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == snapshot_) return prices_;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) {
      Count(AmountsOf(snapshot_->node(i)), -1);
      Count(AmountsOf(snapshot->node(i)), 1);
    });
  } else {
    CountAll(*snapshot);
  }
  snapshot_ = snapshot;
  MakePrices();
  return prices_;
}

void SupplyLedger::MakePrices() {
  prices_ = market_.Prices(sums_);
  const auto first = static_cast<std::ptrdiff_t>(market_.first_of_outlook());
  std::ranges::copy(outlook_, prices_.begin() + first);
}

SomeGoods SupplyLedger::AmountsOf(const Node& node) {
  market_.Supply(node, counted_);
  return WithoutZeros(counted_);
}

void SupplyLedger::Count(const SomeGoods& amounts, int sign) {
  for (const auto& [good, amount] : amounts) sums_[good] += sign * amount;
}

void SupplyLedger::CountAll(const Snapshot& snapshot) {
  std::ranges::fill(sums_, 0);
  LikenessMemo<SomeGoods> known(snapshot.size());
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (const SomeGoods* const amounts = known.Find(node)) {
      Count(*amounts, 1);
      continue;
    }
    SomeGoods amounts = AmountsOf(node);
    Count(amounts, 1);
    known.Put(node, std::move(amounts));
  }
}

ScarcityMarket::ScarcityMarket(const RequestMix& mix, const ModelGroups& groups, const Fleet& fleet,
                               const WasteParameters& parameters, double points_per_gpu,
                               const CardWorth& worth)
    : groups_(groups), parameters_(parameters), points_per_gpu_(points_per_gpu), worth_(worth) {
  for (const RequestClass& entry : mix) mean_ask_ += entry.weight * worth_.GpusOf(entry.shape);
  for (const NodeKind& kind : fleet) all_milli_ += double(kind.nodes) * kind.state.total;
  FindSlots(mix, fleet);
  if (worth_.counts_memory) {
    FindRoom(mix);
    FindRoomInMemory(mix);
  } else {
    FindShares(mix);
  }
  FindModelSets(mix);
}

void ScarcityMarket::FindSlots(const RequestMix& mix, const Fleet& fleet) {
  struct Wanted {
    Slot slot;
    double scarcity;
  };
  std::vector<Wanted> wanted;
  for (const RequestClass& ask : mix) {
    Slot slot{ask.shape.gpu_count(), kMilliPerGpu, ask.shape.cpu_milli, 0};
    if (slot.gpus < 2 || ask.shape.is_share()) continue;
    for (const RequestClass& other : mix) {
      const int times = other.shape.is_share() ? 0 : other.shape.gpu_count() / slot.gpus;
      if (times > 0 && other.shape.cpu_milli + times > slot.cpu_milli * times) {
        slot.demand += other.weight * times;
      }
    }
    std::int64_t slots = fleet.empty() ? 1 : 0;
    for (const NodeKind& kind : fleet) slots += kind.nodes * CountSlots(kind.state, slot);
    if (slots > 0) wanted.push_back({slot, slot.demand / static_cast<double>(slots)});
  }
  std::ranges::stable_sort(wanted, std::greater<>(), &Wanted::scarcity);
  for (const Wanted& next : wanted) {
    const auto is_like = [&](const Slot& other) {
      const std::int64_t a = other.cpu_milli, b = next.slot.cpu_milli;
      return other.gpus == next.slot.gpus && std::abs(a - b) * 10 <= std::max(a, b);
    };
    if (slots_.size() < kMostSlots && std::ranges::none_of(slots_, is_like)) {
      slots_.push_back(next.slot);
    }
  }
}

void ScarcityMarket::FindRoom(const RequestMix& mix) {
  std::map<int, double> asked;  // GPU by size, of pods with one GPU
  for (const RequestClass& entry : mix) {
    const int milli = entry.shape.milli_per_gpu();
    if (entry.shape.gpu_count() == 1 && milli > kMilliPerGpu / 2) {
      asked[milli] += entry.weight * milli;
    }
  }
  if (asked.empty()) return;
  // Among equals the larger.
  const auto most = std::ranges::max_element(
      asked, [](const auto& a, const auto& b) { return a.second <= b.second; });
  Slot room{1, most->first, 0, 0};
  for (const RequestClass& entry : mix) {
    if (entry.shape.milli_per_gpu() >= room.milli) {
      room.demand += entry.weight * entry.shape.gpu_count();
    }
  }
  slots_.push_back(room);
}

void ScarcityMarket::FindRoomInMemory(const RequestMix& mix) {
  std::map<std::int64_t, double> asked;  // memory by size, of pods with a share that says it
  for (const RequestClass& entry : mix) {
    const std::int64_t says = ShareMemoryMib(entry.shape);
    if (2 * static_cast<double>(says) > worth_.mean_card_mib) {
      asked[says] += entry.weight * entry.shape.gpu_count() * static_cast<double>(says);
    }
  }
  if (asked.empty()) return;
  const auto most = std::ranges::max_element(
      asked, [](const auto& a, const auto& b) { return a.second <= b.second; });
  Slot room{1, 0, 0, 0, most->first};
  for (const RequestClass& entry : mix) {
    const bool is_whole = entry.shape.milli_per_gpu() == kMilliPerGpu;
    if (is_whole || ShareMemoryMib(entry.shape) >= room.memory_mib) {
      room.demand += entry.weight * entry.shape.gpu_count();
    }
  }
  slots_.push_back(room);
}

void ScarcityMarket::FindShares(const RequestMix& mix) {
  Levels asked{};
  for (const RequestClass& entry : mix) {
    if (!entry.shape.is_share()) continue;
    const int level = LevelOf(entry.shape.milli_per_gpu() + kMilliPerGpu / kLevels - 1);
    if (level > 0) asked[static_cast<std::size_t>(level)] += entry.weight * entry.shape.gpu_count();
  }
  for (int level = 1; level <= kLevels; ++level) {
    const double count = asked[static_cast<std::size_t>(level)];
    if (count > 0) shares_.push_back({level, count});
  }
  std::ranges::stable_sort(shares_, std::greater<>(),
                           [](const ShareDemand& each) { return each.level * each.count; });
  if (shares_.size() > kMostShares) shares_.resize(kMostShares);
}

std::vector<double> ScarcityMarket::Outlook(const Snapshot& snapshot) const {
  if (shares_.empty()) return {};
  Levels open{};
  double free_milli = 0;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (!node.spec().ready) continue;
    for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
      const int free = UsableMilli(node, gpu);
      free_milli += free;
      open[static_cast<std::size_t>(LevelOf(free))] += 1;
    }
  }
  std::vector<ShareDemand> demand = shares_;
  for (ShareDemand& each : demand) each.count *= free_milli / kMilliPerGpu / mean_ask_;
  const Levels worth = ExpectedWorthOfLevels(demand, open);
  std::vector<double> prices(kLevels, 0);  // of nothing, and of a whole GPU: 0
  for (std::size_t level = 1; level < kLevels; ++level) {
    const double size = static_cast<double>(level) / kLevels;
    prices[level] = (worth[level] - size) * points_per_gpu_;
  }
  return prices;
}

void ScarcityMarket::FindModelSets(const RequestMix& mix) {
  std::map<Groups, double> demand;  // of the classes that name just these models
  for (const RequestClass& entry : mix) {
    const double gpus = entry.weight * worth_.GpusOf(entry.shape);
    if (entry.shape.models.empty() || gpus <= 0) continue;
    Groups groups;  // ascending, as the models are sorted by name like the groups
    for (const std::string& model : entry.shape.models) groups.push_back(groups_.GroupOf(model));
    demand[std::move(groups)] += gpus;
  }
  std::vector<std::pair<Groups, double>> most(demand.begin(), demand.end());
  std::ranges::stable_sort(most, std::greater<>(), &std::pair<Groups, double>::second);
  if (most.size() > kMostModelSets) most.resize(kMostModelSets);
  for (const auto& [groups, own] : most) {
    ModelSet set{groups, 0};
    for (const auto& [other, gpus] : demand) {
      if (std::ranges::includes(groups, other)) set.demand += gpus;
    }
    model_sets_.push_back(std::move(set));
  }
}

std::int64_t ScarcityMarket::CountSlots(const GpuState& state, const Slot& slot) {
  const auto end = state.free.begin() + state.count;
  if (slot.memory_mib > 0) {
    if (state.card_mib == 0) return 0;
    const auto memory = state.memory_mib.begin();
    return std::count_if(memory, memory + state.count,
                         [&](std::int32_t free) { return free >= slot.memory_mib; });
  }
  const std::int64_t slots =
      (end - std::lower_bound(state.free.begin(), end, slot.milli)) / slot.gpus;
  if (slots == 0 || slot.cpu_milli == 0) return slots;
  return std::clamp<std::int64_t>(state.cpu_milli / slot.cpu_milli, 0, slots);
}

void ScarcityMarket::CountSlots(const GpuState& state, std::span<int> amounts) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    amounts[i] = static_cast<int>(CountSlots(state, slots_[i]));
  }
}

void ScarcityMarket::Supply(const Node& node, std::span<int> amounts) const {
  std::ranges::fill(amounts, 0);
  if (node.gpus().empty() || !node.spec().ready) return;
  const GpuState state = worth_.StateOf(node);
  amounts[groups_.GroupOf(node.spec().gpu_model)] =
      static_cast<int>(std::lround(worth_.MilliOf(state)));
  CountSlots(state, amounts.subspan(groups_.size()));
  amounts.back() = SlotGpus(state);
}

void ScarcityMarket::Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
                           std::span<int> amounts) const {
  std::ranges::fill(amounts, 0);
  if (node.gpus().empty()) return;
  const GpuState before = worth_.StateOf(node), after = before.After(node, shape, choice);
  amounts[groups_.GroupOf(node.spec().gpu_model)] =
      static_cast<int>(std::lround(worth_.MilliOf(before) - worth_.MilliOf(after)));
  const std::span<int> slots = amounts.subspan(groups_.size());
  CountSlots(before, slots);
  std::array<int, kMostSlots + kMostRooms> left{};
  CountSlots(after, left);
  for (std::size_t i = 0; i < slots_.size(); ++i) slots[i] -= left[i];
  if (!shares_.empty() && shape.is_share() && shape.gpu_count() == 1) {
    const int free = UsableMilli(node, static_cast<std::size_t>(std::countr_zero(choice.gpus)));
    const std::span<int> levels = slots.subspan(slots_.size());
    levels[static_cast<std::size_t>(LevelOf(free) % kLevels)] += 1;
    levels[static_cast<std::size_t>(LevelOf(std::max(free - choice.milli, 0)))] -= 1;
  }
  amounts.back() = SlotGpus(before) - SlotGpus(after);
}

double ScarcityMarket::SlotPrice(const Slot& slot, double pods, std::int64_t slots) const {
  if (slots <= 0) return 0;
  const double scarcity = pods * slot.demand / static_cast<double>(slots);
  if (slot.memory_mib > 0) {
    return parameters_.share_price * static_cast<double>(slot.memory_mib) / worth_.mean_card_mib *
           worth_.memory * std::min(kRoomLimit, std::pow(scarcity, kRoomExponent));
  }
  if (slot.gpus == 1) {
    return worth_.compute * parameters_.share_price * slot.milli / kMilliPerGpu *
           std::min(kRoomLimit, std::pow(scarcity, kRoomExponent));
  }
  return slot.gpus *
         std::min(parameters_.scarcity_limit, std::pow(scarcity, parameters_.scarcity_exponent));
}

double ScarcityMarket::ModelPrice(const ModelSet& set, double pods,
                                  std::span<const std::int64_t> supply) const {
  double free = 0;
  for (const std::size_t group : set.groups) free += static_cast<double>(supply[group]);
  if (free <= 0) return 0;
  return parameters_.model_price *
         std::min(parameters_.scarcity_limit, pods * set.demand * kMilliPerGpu / free);
}

std::vector<double> ScarcityMarket::Prices(std::span<const std::int64_t> supply) const {
  std::vector<double> prices(goods(), 0);
  std::int64_t free_milli = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) free_milli += supply[g];
  const double free = all_milli_ > 0 ? static_cast<double>(free_milli) / all_milli_ : 1;
  prices.back() =
      SlotPriorPrice(free, parameters_.slot_price, parameters_.least_slot_price) * points_per_gpu_;
  if (mean_ask_ <= 0 || free_milli <= 0) return prices;
  const double pods = static_cast<double>(free_milli) / kMilliPerGpu / mean_ask_;
  for (const ModelSet& set : model_sets_) {
    const double price = ModelPrice(set, pods, supply) * points_per_gpu_ / kMilliPerGpu;
    for (const std::size_t group : set.groups) prices[group] = std::max(prices[group], price);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::size_t good = groups_.size() + i;
    prices[good] = SlotPrice(slots_[i], pods, supply[good]) * points_per_gpu_;
  }
  return prices;
}

}  // namespace berth
