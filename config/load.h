// SPDX-License-Identifier: Apache-2.0
//
// Reads a BerthConfiguration. A setting that is not written keeps its default. Unknown keys, wrong
// types and values out of range are refused with line and path.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

namespace berth {

// `origin` names the text in errors. Error: kInvalidArgument "ORIGIN:LINE: server.threads: want an
// integer from 1 to 64, got \"many\"".
Result<Config> LoadConfig(const std::string& text, std::string_view origin);

// Error: kNotFound when the file cannot be read; else as LoadConfig.
Result<Config> LoadConfigFile(const std::string& path);

}  // namespace berth
