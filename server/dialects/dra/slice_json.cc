// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/slice_json.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/quantity.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"

namespace berth::dialects {

std::string QuantityText(simdjson::ondemand::value amount) {
  if (amount.type() == simdjson::ondemand::json_type::string) return wire::TextOf(amount);
  std::string text(amount.raw_json_token());
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

namespace {

using wire::ForEachField;
using wire::TextOf;
using wire::WithField;

// {"value": "40Gi"}
std::string ValueText(object content) {
  std::string text;
  WithField(content, "value", [&text](value amount) { text = QuantityText(amount); });
  return text;
}

class SliceReader {
 public:
  explicit SliceReader(PublishedSlice& slice) : slice_(slice) {}

  // Its driver, pool and node.
  void ReadNames(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "driver") slice_.driver = TextOf(content);
      if (key == "nodeName") slice_.node = TextOf(content);
      if (key == "pool") ReadPool(content.get_object());
    });
  }

  // Requires: the names are read.
  Status ReadDevices(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "sharedCounters") ReadCounters(content.get_array(), "name", slice_.counters);
      if (key != "devices") return;
      for (auto device : content.get_array()) ReadDevice(device.get_object());
    });
    if (slice_.driver.empty()) return Invalid("spec.driver: want a name, got \"\"");
    if (slice_.pool.empty()) return Invalid("spec.pool.name: want a name, got \"\"");
    const auto nameless = std::ranges::count(slice_.devices, "", &PublishedDevice::name);
    if (nameless == 0) return problem_;
    return Invalid("spec.devices: want a name of each, got " + std::to_string(nameless) +
                   " without");
  }

 private:
  void ReadPool(object pool) {
    ForEachField(pool, [this](std::string_view key, value content) {
      if (key == "name") slice_.pool = TextOf(content);
      if (key == "generation") slice_.generation = content.get_int64();
      if (key == "resourceSliceCount") slice_.slices_in_pool = content.get_int64();
    });
  }

  void ReadDevice(object fields) {
    PublishedDevice device{
        .name = {}, .seen = cel::Device(slice_.driver), .taints = {}, .consumes = {}};
    ReadFields(fields, device);
    slice_.devices.push_back(std::move(device));
  }

  void ReadFields(object fields, PublishedDevice& device) {
    ForEachField(fields, [this, &device](std::string_view key, value content) {
      if (key == "name") device.name = TextOf(content);
      if (key == "basic") ReadFields(content.get_object(), device);  // v1beta1
      if (key == "attributes") ReadAttributes(content.get_object(), device.seen);
      if (key == "capacity") ReadCapacities(content.get_object(), device);
      if (key == "consumesCounters") {
        ConsumedCounters counters;
        ReadCounters(content.get_array(), "counterSet", counters);
        device.consumes = std::make_shared<const ConsumedCounters>(std::move(counters));
      }
      if (key == "taints") ReadTaints(content.get_array(), device);
      if (key == "bindingConditions") device.binds = true;
      if (key == "allowMultipleAllocations") {
        device.divisible = content.get_bool();
        device.seen.SetAllowMultipleAllocations(device.divisible);
      }
    });
  }

  void ReadAttributes(object attributes, cel::Device& device) {
    ForEachField(attributes, [this, &device](std::string_view name, value attribute) {
      ForEachField(attribute.get_object(), [&](std::string_view type, value content) {
        if (type == "string") device.SetAttribute(name, TextOf(content));
        if (type == "int") device.SetAttribute(name, std::int64_t{content.get_int64()});
        if (type == "bool") device.SetAttribute(name, bool{content.get_bool()});
        if (type == "version") device.SetAttribute(name, ReadVersion(TextOf(content)));
        if (type == "strings") ReadList<std::string>(name, content.get_array(), device);
        if (type == "ints") ReadList<std::int64_t>(name, content.get_array(), device);
        if (type == "bools") ReadList<bool>(name, content.get_array(), device);
        if (type == "versions") ReadList<cel::Version>(name, content.get_array(), device);
      });
    });
  }

  template <class T>
  void ReadList(std::string_view name, array list, cel::Device& device) {
    std::vector<T> read;
    for (auto item : list) {
      if constexpr (std::is_same_v<T, std::string>) {
        read.emplace_back(std::string_view(item.get_string()));
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        read.push_back(item.get_int64());
      } else if constexpr (std::is_same_v<T, bool>) {
        read.push_back(item.get_bool());
      } else {
        read.push_back(ReadVersion(std::string_view(item.get_string())));
      }
    }
    device.SetAttribute(name, std::move(read));
  }

  cel::Version ReadVersion(std::string_view text) {
    auto version = cel::Version::Parse(text);
    if (!version) Refuse(version.error().message);
    return version ? *version : cel::Version();
  }

  void ReadCapacities(object capacities, PublishedDevice& device) {
    DeviceCapacities all;
    ForEachField(capacities, [&](std::string_view name, value content) {
      DeviceCapacity& capacity = all.emplace_back(DeviceCapacity{std::string(name)});
      ForEachField(content.get_object(), [&](std::string_view key, value it) {
        if (key == "requestPolicy") ReadPolicy(it.get_object(), capacity);
        if (key != "value") return;
        const std::string text = QuantityText(it);
        const auto amount = cel::Amount::Parse(text);
        if (!amount) return Refuse(amount.error().message);
        device.seen.SetCapacity(name, *amount);
        if (const auto milli = Milli(text, capacity)) capacity.there_is = *milli;
      });
    });
    device.capacity = std::make_shared<const DeviceCapacities>(std::move(all));
  }

  void ReadPolicy(object policy, DeviceCapacity& capacity) {
    ForEachField(policy, [&](std::string_view key, value content) {
      if (key == "default") capacity.unasked = Milli(QuantityText(content), capacity);
      if (key == "validValues") {
        for (value one : content.get_array()) {
          if (const auto milli = Milli(QuantityText(one), capacity))
            capacity.values.push_back(*milli);
        }
      }
      if (key == "validRange") {
        ForEachField(content.get_object(), [&](std::string_view bound, value it) {
          if (bound == "min") capacity.least = Milli(QuantityText(it), capacity);
          if (bound == "max") capacity.most = Milli(QuantityText(it), capacity);
          if (bound == "step") capacity.step = Milli(QuantityText(it), capacity);
        });
      }
    });
  }

  // nullopt: it is no whole number of thousandths of 64 bits, which the capacity then says.
  std::optional<std::int64_t> Milli(const std::string& text, DeviceCapacity& capacity) {
    const auto much = Quantity::Parse(text);
    if (!much) Refuse(much.error().message);
    const auto milli = much ? much->Exactly(-3) : std::nullopt;
    capacity.is_exact = capacity.is_exact && milli.has_value();
    return milli;
  }

  // A list of counter sets: the one that there is, or of what a device consumes.
  void ReadCounters(array sets, std::string_view name_key, std::vector<ConsumedCounter>& into) {
    for (auto set : sets) {
      std::string name;
      const std::size_t first = into.size();
      ForEachField(set.get_object(), [&](std::string_view key, value content) {
        if (key == name_key) name = TextOf(content);
        if (key != "counters") return;
        ForEachField(content.get_object(), [&](std::string_view counter, value amount) {
          const auto much = Quantity::Parse(ValueText(amount.get_object()));
          if (!much) return Refuse(much.error().message);
          into.push_back({"", std::string(counter), much->MilliValue()});
        });
      });
      for (std::size_t i = first; i < into.size(); ++i) into[i].set = name;
    }
  }

  void ReadTaints(array taints, PublishedDevice& device) {
    for (Taint& taint : wire::ReadTaints(taints)) {
      if (taint.effect != TaintEffect::kPreferNoSchedule) device.taints.push_back(std::move(taint));
    }
  }

  void Refuse(std::string why) {
    if (problem_) problem_ = Invalid(std::move(why));
  }

  PublishedSlice& slice_;
  Status problem_;
};

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

Result<PublishedSlice> DecodePublishedSlice(const PaddedText& text) {
  PublishedSlice slice;
  Status read;
  SliceReader reader(slice);
  // Twice, since attributes without a domain have that of the driver, wherever it stands.
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "ResourceSlice", [&](std::string_view key, value content) {
              if (key == "spec") reader.ReadNames(content.get_object());
            }));
  BERTH_TRY_STATUS(wire::ReadNamed(text, "ResourceSlice", [&](std::string_view key, value content) {
    if (key == "spec") read = reader.ReadDevices(content.get_object());
  }));
  BERTH_TRY_STATUS(read);
  slice.name = std::move(meta.name);
  return slice;
}

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
