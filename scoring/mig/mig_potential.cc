// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_potential.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace berth {
namespace {

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
