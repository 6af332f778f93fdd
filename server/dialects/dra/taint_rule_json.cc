// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/taint_rule_json.h"

#include <utility>

#include "server/wire/json/object_reader.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::TextOf;

using simdjson::ondemand::object;
using simdjson::ondemand::value;

// unread: what it selects by that is not read.
void ReadSelector(object selector, DeviceTaintRule& rule, std::string& unread) {
  rule.selects = true;
  ForEachField(selector, [&](std::string_view key, value content) {
    if (key == "driver") {
      rule.driver = TextOf(content);
    } else if (key == "pool") {
      rule.pool = TextOf(content);
    } else if (key == "device") {
      rule.device = TextOf(content);
    } else {
      unread = key;
    }
  });
}

void ReadSpec(object spec, DeviceTaintRule& rule, std::string& unread) {
  ForEachField(spec, [&](std::string_view key, value content) {
    if (key == "deviceSelector") ReadSelector(content.get_object(), rule, unread);
    if (key != "taint") return;
    ForEachField(content.get_object(), [&rule](std::string_view name, value text) {
      if (name != "effect") return;
      const std::string_view effect = text.get_string();
      rule.excludes = effect == "NoSchedule" || effect == "NoExecute";
    });
  });
}

}  // namespace

bool DeviceTaintRule::Excludes(std::string_view of_driver, std::string_view of_pool,
                               std::string_view of_device) const {
  return excludes && selects && driver.value_or(std::string(of_driver)) == of_driver &&
         pool.value_or(std::string(of_pool)) == of_pool &&
         device.value_or(std::string(of_device)) == of_device;
}

Result<DeviceTaintRule> DecodeDeviceTaintRule(const PaddedText& text, std::string& problem) {
  DeviceTaintRule rule;
  std::string unread;
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "DeviceTaintRule", [&](std::string_view key, value content) {
              if (key == "spec") ReadSpec(content.get_object(), rule, unread);
            }));
  rule.name = std::move(meta.name);
  if (!unread.empty()) {
    rule.selects = false;
    problem = "spec.deviceSelector." + unread + ": want driver, pool and device alone; " +
              "Berth does not see which devices have the taint, kube-scheduler does";
  }
  return rule;
}

}  // namespace berth::dialects
