// SPDX-License-Identifier: Apache-2.0
//
// The manual page of a program, made from the commands and options of its parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace berth {

// Section 1, as troff with the macros of man(7).
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace berth
