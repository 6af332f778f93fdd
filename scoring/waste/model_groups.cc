// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/model_groups.h"

#include <algorithm>
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

}  // namespace berth
