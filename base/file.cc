// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

namespace berth {

Error TooLarge(const std::string& path, std::size_t most_bytes) {
  return {Errc::kInvalidArgument,
          path + ": want at most " + std::to_string(most_bytes >> 20) + " MiB"};
}

Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // read() turns errors of the file (the path may be a folder) into badbit; stream buffer iterators
  // would throw an exception.
  std::vector<char> block(std::size_t{1} << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) return tl::unexpected(TooLarge(path, most_bytes));
  }
  if (!file.is_open() || file.bad()) {
    const char* const reason = errno != 0 ? std::strerror(errno) : "unknown error";
    return Fail(Errc::kNotFound, path + ": cannot be read: " + reason);
  }
  return text;
}

std::string ReadStandardInput(std::size_t most_bytes) {
  std::string text;
  char part[1 << 16];
  while (text.size() <= most_bytes) {
    const std::size_t wanted = std::min(sizeof part, most_bytes + 1 - text.size());
    const std::size_t got = std::fread(part, 1, wanted, stdin);
    if (got == 0) break;
    text.append(part, got);
  }
  return text;
}

}  // namespace berth
