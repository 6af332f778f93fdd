// SPDX-License-Identifier: Apache-2.0
//
// The text of page.html, compiled into the program.
#pragma once

#include <string_view>

namespace berth::replay {

// "/*SUMMARY*/" is replaced by the summary's JSON.
extern const std::string_view kPageTemplate;

}  // namespace berth::replay
