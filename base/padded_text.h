// SPDX-License-Identifier: Apache-2.0
//
// PaddedText: a text with readable bytes behind its end. A JSON parser reads in blocks and may read
// a little past the end of its input; on such a text it needs no copy.
//
// A text that is empty by default, or was moved from, has no bytes behind it: a parser reports that
// as an error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

class PaddedText {
 public:
  static constexpr std::size_t kPadding = 64;  // bytes

  PaddedText() = default;
  explicit PaddedText(std::string text) : text_(std::move(text)) {
    text_.reserve(text_.size() + kPadding);
  }
  explicit PaddedText(std::string_view text) { Assign(text); }
  explicit PaddedText(const char* text) : PaddedText(std::string_view(text)) {}
  PaddedText(const PaddedText& other) : PaddedText(other.view()) {}
  PaddedText& operator=(const PaddedText& other) {
    if (this != &other) Assign(other.view());
    return *this;
  }
  PaddedText(PaddedText&&) noexcept = default;
  PaddedText& operator=(PaddedText&&) noexcept = default;
  ~PaddedText() = default;

  void Assign(std::string_view text) {
    text_.reserve(text.size() + kPadding);
    text_.assign(text);
  }
  void Append(std::string_view text) {
    const std::size_t needed = text_.size() + text.size() + kPadding;
    if (text_.capacity() < needed) text_.reserve(std::max(needed, 2 * text_.capacity()));
    text_.append(text);
  }
  // Keeps the memory for the next text unless it is more than `most_kept` bytes.
  void Clear(std::size_t most_kept) {
    text_.clear();
    if (text_.capacity() > most_kept) text_.shrink_to_fit();
  }
  // The string, whose memory can be used for something else.
  std::string Release() && { return std::exchange(text_, {}); }

  [[nodiscard]] const std::string& str() const { return text_; }
  [[nodiscard]] std::string_view view() const { return text_; }
  // NOLINTNEXTLINE(google-explicit-constructor): as std::string converts.
  operator std::string_view() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  // size() and the bytes behind it that may be read.
  [[nodiscard]] std::size_t capacity() const { return text_.capacity(); }
  [[nodiscard]] const char* data() const { return text_.data(); }
  // A parser may change the text in place; its size stays.
  [[nodiscard]] char* data() { return text_.data(); }

 private:
  std::string text_;
};

}  // namespace berth
