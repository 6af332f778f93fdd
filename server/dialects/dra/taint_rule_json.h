// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a resource.k8s.io DeviceTaintRule (v1, v1beta2, v1alpha3): a taint that somebody puts
// on devices beside those that their driver publishes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"

namespace berth::dialects {

struct DeviceTaintRule {
  std::string namespace_name;  // always empty
  std::string name;
  // Which devices; not set: of any. `selects`: without a selector it is about none.
  bool selects = false;
  std::optional<std::string> driver, pool, device;
  bool excludes = false;  // its effect keeps claims without a toleration away

  [[nodiscard]] bool Excludes(std::string_view of_driver, std::string_view of_pool,
                              std::string_view of_device) const;
};

// problem: the rule selects by what only v1alpha3 has (a class, CEL). It excludes nothing then.
// Error: kInvalidArgument for what is not JSON, not such an object or has no name.
Result<DeviceTaintRule> DecodeDeviceTaintRule(const PaddedText& text, std::string& problem);

}  // namespace berth::dialects
