// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste_parameters.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {

constexpr double kSettled = 0.25;  // the turnover from which on a cluster counts as in balance

}  // namespace

WasteParameters AtTurnover(WasteParameters parameters, double turnover) {
  const double settled = std::min(turnover / kSettled, 1.0);
  const double ratio = double(parameters.settled_patience) / parameters.patience;
  parameters.patience =
      static_cast<int>(std::lround(parameters.patience * std::pow(ratio, settled)));
  parameters.fragmentation +=
      (parameters.settled_fragmentation - parameters.fragmentation) * settled;
  parameters.optimism *= 1 - settled;
  return parameters;
}

}  // namespace berth
