// SPDX-License-Identifier: Apache-2.0
//
// How the memory of a request body grows while its bytes arrive straight from the socket.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/padded_text.h"

namespace berth::http {

// A connection frees the memory of a body above this size once its request is answered.
inline constexpr std::size_t kKeptBodyBytes = std::size_t{1} << 20;

// Growing a string fills it with zeros; in steps that the cache holds this costs little.
inline constexpr std::size_t kBodyStepBytes = std::size_t{256} << 10;
inline constexpr std::size_t kFirstBodyBytes = std::size_t{16} << 10;

// Makes body.size() (the part that may be written) larger than `received`, up to `total`, with room
// for the padding of a PaddedText behind it. Requires: received < total.
//
// Content-Length is not trusted: memory is touched only one step ahead of the bytes that have
// arrived, and address space stays below four times these bytes (or 64 KiB). So a large body is
// still copied only a few times. A size left over from the last request is used as it is, because
// most requests of a connection have the same size.
inline void GrowBody(std::string& body, std::size_t received, std::size_t total) {
  if (body.size() > received) {
    body.resize(std::min(body.size(), total));
    return;
  }
  const std::size_t step = std::clamp(received, kFirstBodyBytes, kBodyStepBytes);
  const std::size_t size = std::min(total, received + step);
  if (body.capacity() < size + PaddedText::kPadding) {
    body.resize(received);
    body.reserve(std::min(total, std::max(4 * received, 4 * kFirstBodyBytes)) +
                 PaddedText::kPadding);
  }
  body.resize(size);
}

}  // namespace berth::http
