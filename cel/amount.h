// SPDX-License-Identifier: Apache-2.0
//
// Amount: a Quantity as CEL sees it. Kubernetes keeps most quantities as a 64-bit integer and a
// power of ten, and the others as a decimal of any length; isInteger() and asInteger() ask which of
// the two it is, so that "1.0" and "100000Gi" are no integers there (k8s.io/apimachinery
// pkg/api/resource, quantity.go and amount.go).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/quantity.h"
#include "base/random.h"

namespace berth::cel {

class Amount {
 public:
  Amount() = default;  // 0

  // Error: kInvalidArgument as Quantity::Parse.
  static Result<Amount> Parse(std::string_view text);
  static Amount Of(std::int64_t units);

  [[nodiscard]] int sign() const;
  // As AsInt64: nullopt where it is no integer to Kubernetes.
  [[nodiscard]] std::optional<std::int64_t> AsInteger() const;
  [[nodiscard]] double AsDouble() const;

  // nullopt where a sum is beyond what Quantity holds (2^63 - 1).
  [[nodiscard]] std::optional<Amount> Plus(const Amount& other) const;
  [[nodiscard]] std::optional<Amount> Minus(const Amount& other) const;
  // Whether Quantity holds it as it is: beyond 2^63 - 1 it does not.
  [[nodiscard]] bool exact() const { return exact_; }

  friend bool operator==(const Amount& a, const Amount& b) { return a.value_ == b.value_; }
  // Whether they were written alike too.
  [[nodiscard]] bool IsSame(const Amount& other) const {
    return value_ == other.value_ && exponent_ == other.exponent_ && decimal_ == other.decimal_ &&
           exact_ == other.exact_;
  }
  friend auto operator<=>(const Amount& a, const Amount& b) { return a.value_ <=> b.value_; }

  // As it was written, to a part in 10^15 where it is beyond 9 * 10^9 and finer than a thousandth.
  void AddTo(Digester& digester) const;

 private:
  // What Quantity caps at.
  static constexpr std::int64_t kAbove = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] bool fits(int exponent) const { return value_.Exactly(exponent).has_value(); }

  Quantity value_;
  int exponent_ = 0;      // its power of ten
  bool decimal_ = false;  // a decimal of any length
  bool exact_ = true;
};

}  // namespace berth::cel
