// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::test {

// Every setting as a row of a Markdown table: key, form, default, meaning. docs/configuration.md
// holds this table.
std::string SettingsTable();

}  // namespace berth::test
