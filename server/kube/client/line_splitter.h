// SPDX-License-Identifier: Apache-2.0
//
// LineSplitter: pieces of any size -> whole lines.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/padded_text.h"

namespace berth::kube {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Calls take(const PaddedText& line) for each line that the bytes complete, without its end,
  // until it returns false; empty lines are left out. False: a line is too long, or take returned
  // false; the rest of the bytes is lost then.
  template <class Take>
  bool Add(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      if (line_.size() + part.size() > max_bytes_) {
        too_long_ = true;
        return false;
      }
      line_.Append(part);
      if (end == std::string_view::npos) return true;
      bytes.remove_prefix(end + 1);
      const bool go_on = line_.empty() || take(std::as_const(line_));
      line_.Clear(kKeptBytes);
      if (!go_on) return false;
    }
    return true;
  }

  [[nodiscard]] bool too_long() const { return too_long_; }
  [[nodiscard]] bool mid_line() const { return !line_.empty(); }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;  // of a rare huge line no more

  const std::size_t max_bytes_;
  PaddedText line_;
  bool too_long_ = false;
};

}  // namespace berth::kube
