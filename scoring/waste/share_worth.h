// SPDX-License-Identifier: Apache-2.0
//
// What the free part of a GPU is worth to the shares that are still to come: shadow prices of a
// cutting-stock program (Gilmore and Gomory, "A linear programming approach to the cutting-stock
// problem", Operations Research 1961) with the parts of GPUs that are open as its stock.
//
//   min  sum over P of x_P                                  fresh GPUs that are cut by pattern P
//   s.t. for each size s of a share: sum over P of a_P(s) (x_P + sum over h of x_hP) >= demand(s)
//        for each level h:           sum over P of x_hP <= open(h)    GPUs with h free, cut by P
//
// A pattern is a set of shares that fit into one GPU, or into the level. A part is worth what the
// best pattern in it is worth by the prices of the demands, from 0 to the 1 of a fresh GPU. Pure
// functions, bounded in time: at most 500 steps, for 64 sizes at 99 levels 14 ms.
#pragma once

#include <array>
#include <span>

#include "cluster/node/node.h"

namespace berth {

// Free compute of a GPU in hundredths, rounded down.
constexpr int kLevels = 100;
constexpr int LevelOf(int milli) { return milli * kLevels / kMilliPerGpu; }

// By level.
using Levels = std::array<double, kLevels + 1>;

struct ShareDemand {
  int level;     // that a share needs, 1..kLevels
  double count;  // how many shares, >= 0
};

// demand: each level once. open: how many GPUs have so much free; levels 0 and kLevels are ignored.
// In GPUs; nothing for an empty demand.
Levels WorthOfLevels(std::span<const ShareDemand> demand, const Levels& open);

// The mean where the demand is a Poisson variable: of some drawn demands, always the same ones.
Levels ExpectedWorthOfLevels(std::span<const ShareDemand> demand, const Levels& open);

}  // namespace berth
