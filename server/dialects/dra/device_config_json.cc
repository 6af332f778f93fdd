// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_config_json.h"

namespace berth::dialects {

DeviceConfig ReadDeviceConfig(simdjson::ondemand::object fields) {
  DeviceConfig config;
  wire::ForEachField(fields, [&config](std::string_view key, simdjson::ondemand::value content) {
    if (key == "requests") {
      config.requests = ReadTexts(content.get_array());
      return;
    }
    config.content += config.content.empty() ? "{\"" : ",\"";
    config.content.append(key).append("\":").append(
        std::string_view(simdjson::to_json_string(content)));
  });
  config.content += config.content.empty() ? "{}" : "}";
  return config;
}

}  // namespace berth::dialects
