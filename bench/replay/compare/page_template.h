// SPDX-License-Identifier: Apache-2.0
//
// page.html, put into the program when it is built.
#pragma once

#include <string_view>

namespace berth::replay {

// "/*SUMMARY*/" stands where the summary's JSON goes.
extern const std::string_view kPageTemplate;

}  // namespace berth::replay
