// SPDX-License-Identifier: Apache-2.0
//
// How the memory of a request body grows while its bytes arrive straight from the socket.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "server/http/http_message.h"

namespace berth::http {

// Above this a connection gives the memory of a body back once its request is answered.
inline constexpr std::size_t kKeptBodyBytes = std::size_t{1} << 20;

// Growing a string fills it with zeros; in steps that the cache holds this costs little.
inline constexpr std::size_t kBodyStepBytes = std::size_t{256} << 10;
inline constexpr std::size_t kFirstBodyBytes = std::size_t{16} << 10;

// Makes body.size() (the part that may be written) larger than `received`, up to `total`, with the
// padding behind it. Requires: received < total.
//
// Content-Length is a promise of a stranger: memory is touched only one step ahead of what has
// come, and address space stays below four times of it (or 64 KiB), so that a large body still is
// copied only a few times. A size left over from the last request is used as it is, because most
// requests of a connection are of one size.
inline void GrowBody(std::string& body, std::size_t received, std::size_t total) {
  if (body.size() > received) {
    body.resize(std::min(body.size(), total));
    return;
  }
  const std::size_t step = std::clamp(received, kFirstBodyBytes, kBodyStepBytes);
  const std::size_t size = std::min(total, received + step);
  if (body.capacity() < size + kBodyPadding) {
    body.resize(received);
    body.reserve(std::min(total, std::max(4 * received, 4 * kFirstBodyBytes)) + kBodyPadding);
  }
  body.resize(size);
}

// Gives the body its final size, with the padding. Moves its bytes only if the padding is missing.
inline void FinishBody(std::string& body, std::size_t size) {
  body.resize(size);
  if (body.capacity() < size + kBodyPadding) {
    body.reserve(size + kBodyPadding);
  }
}

}  // namespace berth::http
