// SPDX-License-Identifier: Apache-2.0
//
// The JSON of resource.k8s.io ResourceSlices (v1, v1beta2, v1beta1), of any driver, whole: every
// device with its attributes, capacities, taints and counters, in the order published.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/device_offers.h"
#include "cluster/values/node_constraints.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {

using wire::array, wire::object, wire::value;  // simdjson's

// The text of a quantity, which JSON may have as a number.
std::string QuantityText(simdjson::ondemand::value amount);

// Error: kInvalidArgument for what is not JSON, not a ResourceSlice, or has values that the API
// does not admit.
Result<PublishedSlice> DecodePublishedSlice(const PaddedText& text);

// The JSON of a resource.k8s.io DeviceTaintRule (v1, v1beta2, v1alpha3): a taint that somebody puts
// on devices beside those that their driver publishes.

struct DeviceTaintRule {
  std::string namespace_name;  // always empty
  std::string name;
  // Which devices; not set: of any. `selects`: without a selector it is about none.
  bool selects = false;
  std::optional<std::string> driver = {}, pool = {}, device = {};
  std::optional<Taint> taint = {};  // that keeps claims without a toleration away; else nothing

  [[nodiscard]] bool Taints(std::string_view of_driver, std::string_view of_pool,
                            std::string_view of_device) const;
  friend bool operator==(const DeviceTaintRule&, const DeviceTaintRule&) = default;
};

// The slices with what the rules add to the taints of their devices: the same ones where they add
// nothing.
DevicePools WithRules(DevicePools pools, std::span<const DeviceTaintRule> rules);

// problem: the rule selects by what only v1alpha3 has (a class, CEL). It taints nothing then.
// Error: kInvalidArgument for what is not JSON, not such an object or has no name.
Result<DeviceTaintRule> DecodeDeviceTaintRule(const PaddedText& text, std::string& problem);

}  // namespace berth::dialects
