// SPDX-License-Identifier: Apache-2.0
//
// ModelGroups: GPU models as a request mix distinguishes them. One group per model that a class of
// the mix names, and a last one for every other model. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scoring/waste/request_mix.h"

namespace berth {

class ModelGroups {
 public:
  explicit ModelGroups(const RequestMix& mix);

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::size_t GroupOf(std::string_view model) const {
    std::size_t index = 0;
    while (index + 1 < groups_.size() && groups_[index].model != model) ++index;
    return index;
  }
  // [class of the mix] whether it takes GPUs of that group.
  [[nodiscard]] const std::vector<std::uint8_t>& Admits(std::size_t group) const {
    return groups_[group].admits;
  }

 private:
  struct Group {
    std::string model;  // empty: every other one
    std::vector<std::uint8_t> admits;
  };
  std::vector<Group> groups_;
};

}  // namespace berth
