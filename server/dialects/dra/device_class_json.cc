// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_class_json.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/class_match.h"
#include "server/wire/json/object_reader.h"
#include "topology/gpu_vendor.h"

namespace berth::dialects {

namespace {

using wire::ForEachField;
using wire::TextOf;

using simdjson::ondemand::object;
using simdjson::ondemand::value;

// What is true of every MIG device of NVIDIA's driver; blanks left out, quotes of one kind.
constexpr std::array<std::string_view, 2> kOfEveryMigDevice = {
    "device.driver=='gpu.nvidia.com'", "device.attributes['gpu.nvidia.com'].type=='mig'"};

class ClassReader {
 public:
  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "extendedResourceName") class_.extended_resource = TextOf(content);
      if (key == "selectors") {
        class_.selectors = ReadSelectors(content.get_array(), [this] {
          class_.readable = false;
          Unread("a selector without cel");
        });
        for (const std::string& expression : class_.selectors) ReadExpression(expression);
      }
      if (key == "config") {
        for (auto config : content.get_array()) {
          class_.configs.push_back(ReadDeviceConfig(config.get_object()));
        }
      }
    });
  }

  DeviceClass Finish(wire::ObjectMeta meta) {
    class_.name = std::move(meta.name);
    class_.created = std::move(meta.created);
    const auto profile = ParseMigProfile(profile_);
    if (unread_.empty() && profile) class_.profile = *profile;
    return std::move(class_);
  }
  // The first expression that is none of those that are read; empty = there is none.
  [[nodiscard]] const std::string& unread() const { return unread_; }

 private:
  void ReadExpression(std::string_view expression) {
    for (;;) {
      const std::size_t end = expression.find("&&");
      ReadTerm(expression.substr(0, end));
      if (end == std::string_view::npos) return;
      expression.remove_prefix(end + 2);
    }
  }

  void ReadTerm(std::string_view term) {
    std::string dense(term);
    std::erase_if(dense, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
    std::ranges::replace(dense, '"', '\'');
    if (std::ranges::find(kOfEveryMigDevice, dense) != kOfEveryMigDevice.end()) return;
    const std::string profile = ProfileIn(term);
    if (profile.empty() || (!profile_.empty() && profile != profile_)) return Unread(dense);
    profile_ = profile;
  }

  void Unread(std::string_view what) {
    if (unread_.empty()) unread_ = what;
  }

  DeviceClass class_;
  std::string profile_;
  std::string unread_;
};

}  // namespace

Result<DeviceClass> DecodeDeviceClass(const PaddedText& text, std::string& problem) {
  ClassReader reader;
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "DeviceClass", [&reader](std::string_view key, value content) {
              if (key == "spec") reader.ReadSpec(content.get_object());
            }));
  DeviceClass read = reader.Finish(std::move(meta));
  std::string unread = reader.unread();
  if (read.readable && AcceptsOnlyWholeGpus(read.selectors)) {
    const auto match = ClassMatch::Of(read.selectors);
    read.whole = match.has_value();
    if (!match) unread = match.error().message;
  }
  if (!read.whole && !read.profile && FindGpuVendor(read.extended_resource) != nullptr) {
    problem = "spec.selectors: want what Berth reads as whole GPUs, or as one MIG profile, for " +
              read.extended_resource + ", got \"" + unread +
              "\"; kube-scheduler alone places pods that ask for it";
  }
  const auto named = ParseMigResource(read.extended_resource);
  if (!named || (read.profile && read.profile == named->profile && !named->shared)) return read;
  problem = "spec.selectors: want what Berth reads as the MIG profile of " +
            read.extended_resource + ", got " +
            (read.profile              ? MigProfileName(*read.profile)
             : reader.unread().empty() ? "no profile"
                                       : "\"" + reader.unread() + "\"") +
            "; kube-scheduler alone places pods that ask for it";
  read.profile.reset();
  return read;
}

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
