// SPDX-License-Identifier: Apache-2.0
//
// Seeded random numbers whose sequence is the same with every compiler and standard library (the
// standard's distributions are not), so that a seed in a report means the same run everywhere.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

// One step of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
// OOPSLA 2014): a good 64-bit mixer; also used to hash integers.
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(Mix64(seed)) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return Mix64(state_);
  }

  // Uniform in [0, bound). Requires: bound > 0. The bias of the modulo is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }

  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Fisher-Yates.
  template <class T>
  void Shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Below(i)]);
    }
  }

 private:
  std::uint64_t state_;
};

// Digest: 128 bits that stand for a sequence of numbers and texts. Two sequences that differ have
// one digest by chance alone (2^-128 a pair); it is not made to withstand somebody who looks for
// such a pair. The same in every process.

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
