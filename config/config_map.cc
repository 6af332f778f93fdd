// SPDX-License-Identifier: Apache-2.0
#include "config/config_map.h"

#include <algorithm>
#include <utility>

#include "config/parse_yaml.h"

namespace berth {
namespace {

constexpr char kUsualKey[] = "berth.yaml";

// The text in which the value of a block begins on the line on which it stands in the manifest.
std::string OnItsLine(const YAML::Node& value, const std::string& manifest) {
  const YAML::Mark mark = value.Mark();
  if (mark.pos < 0 || static_cast<std::size_t>(mark.pos) >= manifest.size()) return "";
  if (manifest[static_cast<std::size_t>(mark.pos)] != '|') return "";
  return std::string(static_cast<std::size_t>(mark.line) + 1, '\n') + value.Scalar();
}

}  // namespace

Result<ConfigText> ConfigInside(std::string text, std::string_view origin) {
  ConfigText as_it_is{std::move(text), std::string(origin)};
  const auto parsed = ParseYaml(as_it_is.text, origin);
  if (!parsed || !parsed->IsMap()) return as_it_is;  // its reader says what is wrong
  const YAML::Node& document = *parsed;
  const YAML::Node kind = document["kind"];
  if (!kind.IsDefined() || !kind.IsScalar() || kind.Scalar() != "ConfigMap") return as_it_is;

  const auto refuse = [&](const YAML::Node& where, const std::string& got) {
    return Invalid(std::string(origin) + ":" + std::to_string(where.Mark().line + 1) +
                   ": data: want one configuration, or one named " + kUsualKey + ", got " + got);
  };
  const YAML::Node data = document["data"];
  if (!data.IsDefined() || !data.IsMap() || data.size() == 0) return refuse(document, "none");
  const YAML::Node usual = data[kUsualKey];
  if (data.size() > 1 && !usual.IsDefined()) {
    return refuse(data, std::to_string(data.size()) + " others");
  }
  const auto first = *data.begin();
  const std::string key =
      usual.IsDefined() || !first.first.IsScalar() ? kUsualKey : first.first.Scalar();
  const YAML::Node value = usual.IsDefined() ? usual : first.second;
  if (!value.IsScalar()) return refuse(value, "no text");
  if (std::string block = OnItsLine(value, as_it_is.text); !block.empty()) {
    return ConfigText{std::move(block), as_it_is.origin};
  }
  return ConfigText{value.Scalar(), as_it_is.origin + " data." + key};
}

}  // namespace berth
