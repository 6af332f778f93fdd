// SPDX-License-Identifier: Apache-2.0
//
// ReadBuffer: bytes that were received and not yet consumed, contiguous, in memory that is used
// again for every request of a connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/padded_text.h"

namespace berth::http {

// Not thread-safe.
class ReadBuffer {
 public:
  [[nodiscard]] std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  void Consume(std::size_t count) {
    begin_ += std::min(count, size());
    if (begin_ == end_) {
      begin_ = end_ = 0;
    }
  }

  // Makes room for at least `count` more bytes at WriteBegin(); views taken before are invalid.
  void Reserve(std::size_t count) {
    if (capacity_ - end_ >= count) {
      return;
    }
    const std::size_t held = size();
    if (capacity_ >= held + count) {
      std::memmove(data_.get(), data_.get() + begin_, held);
    } else {
      const std::size_t capacity = std::max(held + count, 2 * capacity_);
      // Plain new: the bytes are written by the socket before anybody reads them.
      std::unique_ptr<char[]> data(new char[capacity]);
      if (held > 0) {
        std::memcpy(data.get(), data_.get() + begin_, held);
      }
      data_ = std::move(data);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }

  [[nodiscard]] char* WriteBegin() { return data_.get() + end_; }
  [[nodiscard]] std::size_t room() const { return capacity_ - end_; }

  // `count` bytes were written at WriteBegin(). Requires: count <= room().
  void Commit(std::size_t count) { end_ += count; }

  // Gives the memory back if it is empty and larger than `keep`.
  void ShrinkIfEmpty(std::size_t keep) {
    if (empty() && capacity_ > keep) {
      data_.reset();
      capacity_ = begin_ = end_ = 0;
    }
  }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// How the memory of a request body grows while its bytes arrive straight from the socket.

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
