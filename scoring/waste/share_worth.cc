// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/share_worth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

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

}  // namespace berth
