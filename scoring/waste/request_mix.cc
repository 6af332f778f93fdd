// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/request_mix.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth {

ModelGroups::ModelGroups(const RequestMix& mix) {
  std::vector<std::string> models;
  for (const RequestClass& entry : mix) {
    for (const std::string& model : entry.shape.models) models.push_back(model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  models.emplace_back();
  for (std::string& model : models) {
    Group group{std::move(model), {}};
    for (const RequestClass& entry : mix) {
      const bool named = !group.model.empty();
      group.admits.push_back(named ? entry.shape.Admits(group.model) : entry.shape.models.empty());
    }
    groups_.push_back(std::move(group));
  }
}

namespace {

constexpr double kSettled = 0.25;  // the turnover from which on a cluster counts as in balance
constexpr double kRoomForAll = 0.5, kNoRoom = 0.8;  // used
constexpr double kMostSlotPrice = 0.01;

}  // namespace

WasteParameters AtTurnover(WasteParameters parameters, double turnover, double used) {
  const double moving = std::min(turnover / kSettled, 1.0);
  const double full = std::clamp((used - kRoomForAll) / (kNoRoom - kRoomForAll), 0.0, 1.0);
  const double settled = moving * full;
  const double ratio = double(parameters.settled_patience) / parameters.patience;
  parameters.patience =
      static_cast<int>(std::lround(parameters.patience * std::pow(ratio, settled)));
  parameters.fragmentation +=
      (parameters.settled_fragmentation - parameters.fragmentation) * settled;
  parameters.best_fit += (parameters.settled_best_fit - parameters.best_fit) * settled;
  parameters.optimism *= 1 - settled;
  parameters.slot_price += (kMostSlotPrice - parameters.slot_price) * moving;
  return parameters;
}

}  // namespace berth
