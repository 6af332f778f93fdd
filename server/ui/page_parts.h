// SPDX-License-Identifier: Apache-2.0
//
// The files of server/ui/page, compiled into the program.
#pragma once

#include <string_view>

namespace berth {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageScripts[8];  // one script, in this order

}  // namespace berth
