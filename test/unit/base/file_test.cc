// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>

namespace berth::file_test {
namespace {

TEST(ReadFile, AFileThatIsNotThereIsNamed) {
  const auto text = ReadFile("/no/such/berth.yaml");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kNotFound);
  EXPECT_EQ(text.error().message, "/no/such/berth.yaml: cannot be read: No such file or directory");
}

TEST(ReadFile, AFolderIsNotAFile) {
  const auto text = ReadFile("/");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kNotFound);
  EXPECT_EQ(text.error().message, "/: cannot be read: Is a directory");
}

}  // namespace
}  // namespace berth::file_test
