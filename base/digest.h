// SPDX-License-Identifier: Apache-2.0
//
// Digest: 128 bits that stand for a sequence of numbers and texts. Two sequences that differ have
// one digest by chance alone (2^-128 a pair); it is not made to withstand somebody who looks for
// such a pair. The same in every process.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "base/random.h"

namespace berth {

struct Digest {
  std::uint64_t high = 0, low = 0;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

class Digester {
 public:
  void Add(std::uint64_t number) {
    high_ = Mix64(high_ ^ number);
    low_ = Mix64(low_ + (number ^ kOther));
  }
  void Add(std::string_view text) {
    Add(text.size());
    std::uint64_t eight = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      eight = eight << 8U | static_cast<unsigned char>(text[i]);
      if (i % 8 == 7 || i + 1 == text.size()) Add(eight);
    }
  }
  [[nodiscard]] Digest digest() const { return {high_, low_}; }

 private:
  static constexpr std::uint64_t kOther = 0xa0761d6478bd642fULL;
  std::uint64_t high_ = 1, low_ = 2;
};

}  // namespace berth
