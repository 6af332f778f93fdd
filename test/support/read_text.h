// SPDX-License-Identifier: Apache-2.0
//
// ReadText: a file that has to be there, as text.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/file.h"

namespace berth::test {

// The whole content; a failure of the test and "" where it cannot be read.
inline std::string ReadText(const std::filesystem::path& path) {
  Result<std::string> text = ReadFile(path);
  if (!text) {
    ADD_FAILURE() << text.error().message;
    return "";
  }
  return *std::move(text);
}

}  // namespace berth::test
