// SPDX-License-Identifier: Apache-2.0
#include "server/settings/config_file.h"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "config/load.h"
#include "config/print.h"

namespace berth {
namespace {

constexpr std::size_t kHashDigits = 12;

std::string HashOf(std::string_view text) { return Sha256Hex(text).substr(0, kHashDigits); }

// Reading anything but a regular file could block for ever.
Result<std::string> ReadRegularFile(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return Fail(Errc::kNotFound, path + ": cannot be read: want a regular file");
  }
  return ReadFile(path);
}

}  // namespace

ConfigFile::Stamp ConfigFile::StampOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return {{static_cast<std::int64_t>(found.st_dev), static_cast<std::int64_t>(found.st_ino),
           found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
           found.st_ctim.tv_nsec}};
}

Result<ConfigFile> ConfigFile::Open(std::string path, std::string listen) {
  ConfigFile file(std::move(path), std::move(listen));
  std::string text;
  if (file.path_.empty()) {
    text = PrintConfig(DefaultConfig());
  } else {
    file.read_ = file.looked_ = StampOf(file.path_);  // before: a later change is seen as one
    BERTH_TRY(text, ReadFile(file.path_));
  }
  BERTH_TRY(file.config_, file.Load(text));
  file.seen_ = file.hash_ = HashOf(text);
  return file;
}

Result<Config> ConfigFile::Load(const std::string& text) {
  BERTH_TRY(Config config, LoadConfig(text, path_));
  if (!listen_.empty()) config.server.listen = listen_;
  return config;
}

std::optional<ConfigReading> ConfigFile::Look() {
  if (path_.empty()) return std::nullopt;
  const Stamp stamp = StampOf(path_);
  const bool is_still = stamp == looked_;
  looked_ = stamp;
  if (stamp == read_ || !is_still) return std::nullopt;
  read_ = stamp;
  return Read();
}

ConfigReading ConfigFile::Read() {
  const Result<std::string> text = ReadRegularFile(path_);
  const std::string hash = text ? HashOf(*text) : "";
  const std::string before = std::exchange(seen_, text ? hash : text.error().message);
  const bool is_new = seen_ != before;
  if (!text) return {hash, is_new, tl::unexpected(text.error())};
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    // Nothing stands for the defaults when the service starts; here it is a file that is being
    // written, or was lost.
    return {hash, is_new, Invalid(path_ + ":1: want a configuration, got an empty file")};
  }
  return {hash, is_new, Load(*text)};
}

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  BERTH_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
              1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

}  // namespace berth
