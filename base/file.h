// SPDX-License-Identifier: Apache-2.0
//
// Files and standard input as text, up to a maximum size.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace berth {

// Configurations, certificates, descriptions of machines.
inline constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;

// The whole content. Error: kNotFound "PATH: cannot be read: No such file or directory", also for a
// folder; kInvalidArgument "PATH: want at most 16 MiB" for more, however large it is (/dev/zero).
Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes = kMostFileBytes);

// What comes on standard input until it ends, at most one byte more than `most_bytes`: its reader
// refuses that.
std::string ReadStandardInput(std::size_t most_bytes = kMostFileBytes);

// "PATH: want at most 16 MiB".
Error TooLarge(const std::string& path, std::size_t most_bytes);

}  // namespace berth
