// SPDX-License-Identifier: Apache-2.0
//
// `berth config check|print`: a configuration from a file, from standard input, or from the
// manifest of a ConfigMap.
#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"
#include "config/load.h"

namespace berth {

// `file` "-" is standard input. Error: an unreadable file, or a ConfigMap without configuration.
Result<ConfigFindings> CheckConfigFile(const std::string& file);

// Error: as CheckConfigFile, or the first problem.
Result<Config> ConfigForPrint(const std::string& file);

}  // namespace berth
