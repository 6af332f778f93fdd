// SPDX-License-Identifier: Apache-2.0
//
// TempFile: a file with the given content that goes away with the object.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace berth::test {

class TempFile {
 public:
  enum class Kind { kPlain, kGzip };

  explicit TempFile(std::string_view content, Kind kind = Kind::kPlain) : path_(NextPath()) {
    if (kind == Kind::kPlain) {
      std::ofstream(path_, std::ios::binary) << content;
      return;
    }
    const gzFile file = gzopen(path_.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
              static_cast<int>(content.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
  }
  ~TempFile() { std::filesystem::remove(path_); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Cuts the file off after so many bytes.
  void Truncate(std::uintmax_t bytes) const { std::filesystem::resize_file(path_, bytes); }

 private:
  static std::string NextPath() {
    static int count = 0;
    return testing::TempDir() + "berth_" + std::to_string(getpid()) + "_" +
           std::to_string(count++) + ".txt";
  }

  std::string path_;
};

}  // namespace berth::test
