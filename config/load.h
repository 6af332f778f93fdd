// SPDX-License-Identifier: Apache-2.0
//
// Reads a BerthConfiguration. A setting that is not written keeps its default. Unknown keys, wrong
// types and values out of range are refused with line and path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace berth {

// `origin` names the text in errors. Error: kInvalidArgument "ORIGIN:LINE: server.threads: want an
// integer from 1 to 64, got \"many\"".
Result<Config> LoadConfig(const std::string& text, std::string_view origin);

// Error: kNotFound when the file cannot be read; else as LoadConfig.
Result<Config> LoadConfigFile(const std::string& path);

// Everything that is to be said of a text, each as the error of LoadConfig is written.
struct ConfigFindings {
  // At most kMostFindings; LoadConfig's is the first. What is written wrongly comes before what
  // does not go together, each by line. Empty: the text is a configuration.
  std::vector<std::string> problems;
  // NotesOn (validate.h), and the constants (model_constants.h) that are set. None beside problems.
  std::vector<std::string> notes;
};
inline constexpr std::size_t kMostFindings = 100;

ConfigFindings CheckConfig(const std::string& text, std::string_view origin);

}  // namespace berth
