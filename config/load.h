// SPDX-License-Identifier: Apache-2.0
//
// Reads a BerthConfiguration. Omitted settings keep their defaults. Unknown keys, wrong types and
// values out of range are errors with line and path.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace berth {

class YamlReader;

// Reads mappings of the file that are no settings of the service.
using ReadBeside = std::function<void(YamlReader&)>;

// `origin` names the text in errors. Error: kInvalidArgument "ORIGIN:LINE: server.threads: want an
// integer from 1 to 64, got \"many\"".
Result<Config> LoadConfig(const std::string& text, std::string_view origin,
                          const ReadBeside& beside = {});

// Error: kNotFound when the file cannot be read; else as LoadConfig.
Result<Config> LoadConfigFile(const std::string& path);

// All findings about a text, each in the form of LoadConfig's errors.
struct ConfigFindings {
  // At most kMostFindings; LoadConfig's error is the first. Malformed settings come before
  // contradictory ones, each by line. Empty: the text is a valid configuration.
  std::vector<std::string> problems;
  // NotesOn (config.h). Empty if there are problems.
  std::vector<std::string> notes;
};
inline constexpr std::size_t kMostFindings = 100;

ConfigFindings CheckConfig(const std::string& text, std::string_view origin);

// A configuration as a cluster stores it: the text inside the manifest of a ConfigMap.

struct ConfigText {
  std::string text;    // for LoadConfig and CheckConfig
  std::string origin;  // names the file, and the key of a ConfigMap, in errors
};

// The value of the manifest's only key in `data`; of several keys, `berth.yaml`. Line numbers count
// in the manifest if the value is a block (`|`), else in the value, with the origin "ORIGIN
// data.KEY". A text of another kind than ConfigMap is returned unchanged. Error: kInvalidArgument
// "ORIGIN:LINE: data: want ..., got ...".
Result<ConfigText> ConfigInside(std::string text, std::string_view origin);

}  // namespace berth
