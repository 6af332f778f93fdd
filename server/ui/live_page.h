// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace berth {

// The live page: one self-contained HTML document that draws /debug/snapshot every few seconds.
std::string_view LivePage();

}  // namespace berth
