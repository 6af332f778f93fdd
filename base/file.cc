// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

namespace berth {

Result<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // read() turns what goes wrong underneath (the path may be a folder) into badbit; stream buffer
  // iterators would let it out as an exception.
  std::vector<char> block(std::size_t{1} << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    const char* const reason = errno != 0 ? std::strerror(errno) : "unknown error";
    return Fail(Errc::kNotFound, path + ": cannot be read: " + reason);
  }
  return text;
}

}  // namespace berth
