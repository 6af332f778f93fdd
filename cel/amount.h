// SPDX-License-Identifier: Apache-2.0
//
// Amount: a Quantity as CEL sees it, and Version.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "base/random.h"
#include "base/result.h"

namespace berth::cel {

// Version: a semantic version, as the attributes of devices have them. Grammar and order are those
// of semver.org 2.0.0 as github.com/blang/semver/v4 reads it: three numbers of 64 bits without
// leading zeros, `-` and pre-release parts, `+` and build parts; build parts do not count in order
// or equality.

class Version {
 public:
  Version() = default;  // 0.0.0

  // Error: kInvalidArgument `want a version such as "1.2.3", got "..."`.
  static Result<Version> Parse(std::string_view text);
  // Reads "v1", "1.2" and "01.2.3" too, as Kubernetes' semver(TEXT, true) does: without "v" before
  // it, without leading zeros, with ".0" for what is missing.
  static Result<Version> ParseLoosely(std::string_view text);

  [[nodiscard]] std::uint64_t major() const { return numbers_[0]; }
  [[nodiscard]] std::uint64_t minor() const { return numbers_[1]; }
  [[nodiscard]] std::uint64_t patch() const { return numbers_[2]; }

  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Version& a, const Version& b);

  void AddTo(Digester& digester) const;

 private:
  struct Part {  // of a pre-release
    bool is_number = false;
    std::uint64_t number = 0;
    std::string text;
  };

  std::uint64_t numbers_[3] = {};
  std::vector<Part> pre_release_;
};

class Amount {
 public:
  Amount() = default;  // 0

  // Error: kInvalidArgument as Quantity::Parse.
  static Result<Amount> Parse(std::string_view text);

  // nullopt where it is no integer of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> AsInteger() const { return value_.Exactly(0); }
  // Whether Quantity holds it as it is: beyond 2^63 - 1 it does not.
  [[nodiscard]] bool exact() const;

  friend bool operator==(const Amount&, const Amount&) = default;
  friend auto operator<=>(const Amount& a, const Amount& b) { return a.value_ <=> b.value_; }

  // To a part in 10^15 where it is beyond 9 * 10^9 and finer than a thousandth.
  void AddTo(Digester& digester) const;

 private:
  Quantity value_;
};

}  // namespace berth::cel
