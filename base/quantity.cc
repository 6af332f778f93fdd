// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <algorithm>
#include <limits>
#include <string>

namespace berth {
namespace {

__extension__ using Int128 = __int128;

constexpr Int128 kNanosPerUnit = 1'000'000'000;
constexpr Int128 kCap = Int128{std::numeric_limits<std::int64_t>::max()} * kNanosPerUnit;

// What a suffix multiplies by: 10^exponent10 * 2^exponent2.
struct Scale {
  int exponent10 = 0;
  int exponent2 = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::optional<Scale> ExponentScale(std::string_view digits) {
  bool negative = false;
  if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (digits.empty() || !std::ranges::all_of(digits, IsDigit)) return std::nullopt;
  constexpr int kBeyond = 100'000'000;  // more than any number of digits can outweigh
  int exponent = 0;
  for (const char c : digits) exponent = std::min(exponent * 10 + (c - '0'), kBeyond);
  return Scale{negative ? -exponent : exponent, 0};
}

std::optional<Scale> ParseSuffix(std::string_view suffix) {
  if (suffix.empty()) return Scale{};
  constexpr std::string_view kDecimal = "num kMGTPE";  // 10^-9, 10^-6, ..., 10^18
  constexpr std::string_view kBinary = "KMGTPE";       // 2^10, 2^20, ..., 2^60
  if (suffix.size() == 1) {
    const auto at = kDecimal.find(suffix[0]);
    if (at == std::string_view::npos || suffix[0] == ' ') return std::nullopt;
    return Scale{static_cast<int>(at) * 3 - 9, 0};
  }
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const auto at = kBinary.find(suffix[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Scale{0, static_cast<int>(at) * 10 + 10};
  }
  if (suffix[0] == 'e' || suffix[0] == 'E') return ExponentScale(suffix.substr(1));
  return std::nullopt;
}

// digits * 10^exponent10 * 2^exponent2 in nanos, rounded up, capped at kCap; all arguments >= 0 but
// the exponent. `sticky` says that non-zero digits were cut from the right of `digits`.
Int128 ScaleUp(Int128 digits, bool sticky, int exponent10, int exponent2) {
  if (digits == 0 && !sticky) return 0;
  exponent10 += 9;
  for (; exponent10 < 0; ++exponent10) {
    // First as much of the binary factor as there is room for: a digit that is cut off before the
    // multiplication is lost.
    for (; exponent2 > 0 && digits < (Int128{1} << 125); --exponent2) digits *= 2;
    sticky = sticky || digits % 10 != 0;
    digits /= 10;
    if (digits == 0) return 1;  // below one nano, and not zero: one nano
  }
  for (; exponent10 > 0 && digits <= kCap; --exponent10) digits *= 10;
  for (; exponent2 > 0 && digits <= kCap; --exponent2) digits *= 2;
  return std::min(digits + (sticky ? 1 : 0), kCap);
}

// value / per, rounded away from zero, capped to 64 bits.
std::int64_t DivideAwayFromZero(Int128 value, Int128 per) {
  const Int128 magnitude = value < 0 ? -value : value;
  const Int128 up = (magnitude + per - 1) / per;
  const Int128 capped = std::min<Int128>(up, std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(value < 0 ? -capped : capped);
}

// In nanos.
Int128 PowerOfTen(int exponent) {
  Int128 power = 1;
  for (; exponent > -9; --exponent) power *= 10;
  return power;
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  const auto refuse = [text] {
    return Invalid("want a quantity such as \"500m\", \"4\" or \"16Gi\", got \"" +
                   std::string(text) + "\"");
  };
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;

  constexpr Int128 kRoom = Int128{1} << 100;  // more digits than this only matter as "not zero"
  Int128 digits = 0;
  int exponent10 = 0;
  bool sticky = false, point = false, any = false;
  for (; at < text.size() && (IsDigit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (digits < kRoom) {
      digits = digits * 10 + (text[at] - '0');
      exponent10 -= point ? 1 : 0;
    } else {
      sticky = sticky || text[at] != '0';
      exponent10 += point ? 0 : 1;
    }
  }
  if (!any) return refuse();
  const std::optional<Scale> scale = ParseSuffix(text.substr(at));
  if (!scale) return refuse();
  const Int128 nanos = ScaleUp(digits, sticky, exponent10 + scale->exponent10, scale->exponent2);
  return Quantity(negative ? -nanos : nanos);
}

std::int64_t Quantity::Value() const { return DivideAwayFromZero(nanos_, kNanosPerUnit); }

std::int64_t Quantity::MilliValue() const {
  return DivideAwayFromZero(nanos_, kNanosPerUnit / 1000);
}

std::optional<std::int64_t> Quantity::Exactly(int exponent) const {
  const Int128 per = PowerOfTen(exponent);
  const Int128 value = nanos_ / per;
  if (nanos_ % per != 0 || value < std::numeric_limits<std::int64_t>::min() ||
      value > std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

double Quantity::Nearest() const { return static_cast<double>(nanos_ / kNanosPerUnit); }

}  // namespace berth
