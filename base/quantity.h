// SPDX-License-Identifier: Apache-2.0
//
// Quantity: Kubernetes' resource quantities, the grammar in full.
//
//   quantity  = signedNumber suffix
//   number    = digits | digits "." digits | digits "." | "." digits
//   suffix    = "" | n u m k M G T P E            (powers of 1000)
//             | Ki Mi Gi Ti Pi Ei                 (powers of 1024)
//             | ("e" | "E") signedDigits          (powers of ten)
//
// "1E" is an exa, "1E3" a thousand. Source: k8s.io/apimachinery pkg/api/resource/quantity.go. As
// there, anything finer than a nano is rounded away from zero and a magnitude above 2^63-1 is
// capped.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace berth {

class Quantity {
 public:
  Quantity() = default;

  // Error: kInvalidArgument `want a quantity such as "500m", "4" or "16Gi", got "..."`.
  static Result<Quantity> Parse(std::string_view text);

  // The value in units / in thousandths of a unit, rounded away from zero, capped to 64 bits.
  [[nodiscard]] std::int64_t Value() const;
  [[nodiscard]] std::int64_t MilliValue() const;

  [[nodiscard]] int sign() const { return (nanos_ > 0) - (nanos_ < 0); }
  // The value in units of 10^exponent, -9 <= exponent <= 27; nullopt where that is no integer, or
  // none of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> Exactly(int exponent) const;
  // The nearest double, without what is behind the point.
  [[nodiscard]] double Nearest() const;

  friend auto operator<=>(const Quantity&, const Quantity&) = default;

 private:
  __extension__ using Nanos = __int128;
  explicit Quantity(Nanos nanos) : nanos_(nanos) {}

  Nanos nanos_ = 0;  // |nanos_| <= (2^63 - 1) * 10^9
};

}  // namespace berth
