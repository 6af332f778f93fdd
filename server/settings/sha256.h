// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace berth {

// 64 hexadecimal digits, as sha256sum prints them.
std::string Sha256Hex(std::string_view bytes);

}  // namespace berth
