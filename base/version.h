// SPDX-License-Identifier: Apache-2.0
//
// The version of all programs: that of CMakeLists.txt, or what the build was given as BERTH_VERSION
// (release/version.sh). "0.2.0", "0.2.0-dev.1042.gef7b0cba".
#pragma once

#include <string_view>

namespace berth {

std::string_view BerthVersion();

}  // namespace berth
