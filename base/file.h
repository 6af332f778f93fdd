// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

// The whole content. Error: kNotFound "PATH: cannot be read: No such file or directory", also for a
// folder.
Result<std::string> ReadFile(const std::string& path);

}  // namespace berth
