// SPDX-License-Identifier: Apache-2.0
//
// Where a configuration can be and how it changes there: a mounted ConfigMap, an ordinary file.
// Each goes away with the object; failures fail the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::test {

class ConfigFolder {
 public:
  ConfigFolder() : folder_(testing::TempDir() + "berth_config_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~ConfigFolder() { std::filesystem::remove_all(folder_); }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;

  [[nodiscard]] std::string At(const std::string& name) const { return folder_ + "/" + name; }

 protected:
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    EXPECT_TRUE(file.flush());
  }
  static void Rename(const std::string& from, const std::string& to) {
    EXPECT_EQ(std::rename(from.c_str(), to.c_str()), 0);
  }

 private:
  std::string folder_;
};

class OrdinaryConfig : public ConfigFolder {
 public:
  explicit OrdinaryConfig(const std::string& text) { Write(path(), text); }

  [[nodiscard]] std::string path() const { return At("berth.yaml"); }

  // Opens, truncates, writes. The file's times differ afterwards: clocks of file systems are
  // coarse, and tests are faster than any editor.
  void Edit(const std::string& text) const {
    const timespec before = ChangeTime();
    do {
      Write(path(), text);
    } while (ChangeTime().tv_sec == before.tv_sec && ChangeTime().tv_nsec == before.tv_nsec);
  }
  // Writes another file and renames it over this one.
  void Replace(const std::string& text) const {
    Write(At("new"), text);
    Rename(At("new"), path());
  }
  void Remove() const { EXPECT_TRUE(std::filesystem::remove(path())); }

 private:
  [[nodiscard]] timespec ChangeTime() const {
    struct stat found = {};
    EXPECT_EQ(stat(path().c_str(), &found), 0);
    return found.st_ctim;
  }
};

// As kubelet keeps it: berth.yaml -> ..data/berth.yaml, ..data -> ..VERSION, and a new version is a
// new folder and one rename.
class MountedConfig : public ConfigFolder {
 public:
  explicit MountedConfig(const std::string& text) {
    Publish(text);
    std::filesystem::create_symlink("..data/berth.yaml", path());
  }

  [[nodiscard]] std::string path() const { return At("berth.yaml"); }

  void Publish(const std::string& text) {
    const std::string before = "..version_" + std::to_string(version_);
    const std::string now = "..version_" + std::to_string(++version_);
    std::filesystem::create_directory(At(now));
    Write(At(now) + "/berth.yaml", text);
    // Older than the one before: what counts is that it is another file.
    std::filesystem::last_write_time(
        At(now) + "/berth.yaml",
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(version_));
    std::filesystem::create_symlink(now, At("..data_tmp"));
    Rename(At("..data_tmp"), At("..data"));
    std::filesystem::remove_all(At(before));
  }

 private:
  int version_ = 0;
};

}  // namespace berth::test
