// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth {

// Standard base64 with padding (RFC 4648 section 4); line breaks are skipped, anything else is
// refused.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace berth
