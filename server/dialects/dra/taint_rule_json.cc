// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/taint_rule_json.h"

#include <memory>
#include <utility>

#include "cluster/claims/node_devices.h"
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

void ReadTaint(object fields, DeviceTaintRule& rule) {
  Taint taint;
  bool excludes = false;
  ForEachField(fields, [&](std::string_view name, value text) {
    if (name == "key") taint.key = TextOf(text);
    if (name == "value") taint.value = TextOf(text);
    if (name != "effect") return;
    const std::string_view effect = text.get_string();
    excludes = effect == "NoSchedule" || effect == "NoExecute";
    taint.effect = effect == "NoExecute" ? TaintEffect::kNoExecute : TaintEffect::kNoSchedule;
  });
  if (excludes) rule.taint = std::move(taint);
}

void ReadSpec(object spec, DeviceTaintRule& rule, std::string& unread) {
  ForEachField(spec, [&](std::string_view key, value content) {
    if (key == "deviceSelector") ReadSelector(content.get_object(), rule, unread);
    if (key == "taint") ReadTaint(content.get_object(), rule);
  });
}

}  // namespace

bool DeviceTaintRule::Taints(std::string_view of_driver, std::string_view of_pool,
                             std::string_view of_device) const {
  return taint && selects && (!driver || *driver == of_driver) && (!pool || *pool == of_pool) &&
         (!device || *device == of_device);
}

DevicePools WithRules(DevicePools pools, std::span<const DeviceTaintRule> rules) {
  for (DevicePool& pool : pools) {
    bool changes = false;
    for (auto& slice : pool.slices) {
      std::shared_ptr<PublishedSlice> tainted;
      for (std::size_t i = 0; i < slice->devices.size(); ++i) {
        for (const DeviceTaintRule& rule : rules) {
          if (!rule.Taints(pool.driver, pool.name, slice->devices[i].name)) continue;
          if (!tainted) tainted = std::make_shared<PublishedSlice>(*slice);
          tainted->devices[i].taints.push_back(*rule.taint);
        }
      }
      changes = changes || tainted;
      if (tainted) slice = std::move(tainted);
    }
    if (changes) pool.likeness = LikenessOf(pool);
  }
  return pools;
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
