// SPDX-License-Identifier: Apache-2.0
//
// What claims and classes have in common in JSON: selectors and configuration of devices. They
// throw as object_reader.h says.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>
#include <vector>

#include "cluster/claims/device_claim.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {

inline std::vector<std::string> ReadTexts(simdjson::ondemand::array list) {
  std::vector<std::string> texts;
  for (auto item : list) texts.emplace_back(std::string_view(item.get_string()));
  return texts;
}

// The CEL expressions; unread() is called for a selector of another kind.
template <class Unread>
std::vector<std::string> ReadSelectors(simdjson::ondemand::array selectors, Unread unread) {
  std::vector<std::string> expressions;
  for (auto selector : selectors) {
    bool read = false;
    wire::ForEachField(selector.get_object(), [&](std::string_view key, auto content) {
      if (key != "cel") return;
      wire::ForEachField(content.get_object(), [&](std::string_view name, auto expression) {
        if (name != "expression") return;
        expressions.push_back(wire::TextOf(expression));
        read = true;
      });
    });
    if (!read) unread();
  }
  return expressions;
}

// The names of the requests, and all else as it is written.
DeviceConfig ReadDeviceConfig(simdjson::ondemand::object fields);

}  // namespace berth::dialects
