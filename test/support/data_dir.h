// SPDX-License-Identifier: Apache-2.0
//
// Where the shared data is: BERTH_DATA, else ../shared/data beside the checkout. Tests that need it
// skip, and say so, where it is not there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "test/support/build_paths.h"

namespace berth::test {

inline std::filesystem::path DataDir() {
  const char* const given = std::getenv("BERTH_DATA");
  return given != nullptr ? given : SourceDir() + "/../shared/data";
}

}  // namespace berth::test

#define BERTH_NEEDS_DATA(path)                                                               \
  if (!std::filesystem::exists(path)) {                                                      \
    GTEST_SKIP() << "no " << (path) << " (set BERTH_DATA to the folder with the data sets)"; \
  }
