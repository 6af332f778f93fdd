// SPDX-License-Identifier: Apache-2.0
#include "cel/amount.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "base/text.h"

namespace berth::cel {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kIdentifier =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789";

bool Only(std::string_view text, std::string_view of) {
  return text.find_first_not_of(of) == std::string_view::npos;
}

// Digits without a leading zero.
std::optional<std::uint64_t> Number(std::string_view text) {
  if (text.empty() || !Only(text, kDigits) || (text.size() > 1 && text[0] == '0')) {
    return std::nullopt;
  }
  return ReadNumber<std::uint64_t>(text);
}

// Calls take(part) for every part between dots, while it says true.
template <class Take>
bool ForEachPart(std::string_view text, Take take) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!take(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// What is before the first two dots, and the rest; fewer where there are fewer dots.
std::vector<std::string_view> SplitInThree(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = text.find('.'); parts.size() < 2 && dot != std::string_view::npos;
       dot = text.find('.')) {
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  parts.push_back(text);
  return parts;
}

constexpr int kMostExponent = 27;  // beyond, any number but 0 is above 2^63 - 1

// What ParseQuantity takes a text apart into.
struct Pieces {
  std::string_view whole;     // digits before the point, without leading zeros; "0" for none
  std::string_view fraction;  // digits behind it
  std::string_view suffix;
  bool any_digit = false;
};

Pieces Split(std::string_view text) {
  Pieces pieces;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const auto take_digits = [&text, &pieces] {
    const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view digits = text.substr(0, size);
    text.remove_prefix(size);
    pieces.any_digit = pieces.any_digit || size > 0;
    return digits;
  };
  pieces.whole = take_digits();
  pieces.whole.remove_prefix(std::min(pieces.whole.find_first_not_of('0'), pieces.whole.size()));
  if (pieces.whole.empty()) pieces.whole = "0";
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    pieces.fraction = take_digits();
  }
  pieces.suffix = text;
  return pieces;
}

// 10 for Ki, ..., 60 for Ei; 0 for others.
int BinaryExponent(std::string_view suffix) {
  if (suffix.size() != 2 || suffix[1] != 'i') return 0;
  return 10 * (1 + static_cast<int>(std::string_view("KMGTPE").find(suffix[0])));
}

// Of a suffix that Quantity has read.
int DecimalExponent(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix.size() == 1)
    return static_cast<int>(std::string_view("num kMGTPE").find(suffix)) * 3 - 9;
  const bool negative = suffix[1] == '-';
  int exponent = 0;
  for (const char c : suffix.substr(1)) {
    if (c >= '0' && c <= '9') exponent = std::min(exponent * 10 + (c - '0'), 1000);
  }
  return negative ? -exponent : exponent;
}

double PowerOfTen(int exponent) {  // as Go's math.Pow10, of -9 to 27
  constexpr std::array<double, kMostExponent + 1> kPowers = {
      1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
      1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27};
  return exponent < 0 ? 1 / kPowers[static_cast<std::size_t>(-exponent)]
                      : kPowers[static_cast<std::size_t>(exponent)];
}

}  // namespace

Result<Version> Version::Parse(std::string_view text) {
  const auto refuse = [text] {
    return Invalid("want a version such as \"1.2.3\", got \"" + std::string(text) + "\"");
  };
  const std::vector<std::string_view> parts = SplitInThree(text);
  if (parts.size() != 3) return refuse();
  std::string_view patch = parts[2];
  if (const std::size_t plus = patch.find('+'); plus != std::string_view::npos) {
    const bool good = ForEachPart(patch.substr(plus + 1), [](std::string_view part) {
      return !part.empty() && Only(part, kIdentifier);
    });
    if (!good) return refuse();
    patch = patch.substr(0, plus);
  }
  Version version;
  if (const std::size_t dash = patch.find('-'); dash != std::string_view::npos) {
    const bool good = ForEachPart(patch.substr(dash + 1), [&version](std::string_view part) {
      const std::optional<std::uint64_t> number = Number(part);
      version.pre_release_.push_back({number.has_value(), number.value_or(0), std::string(part)});
      return number || (!part.empty() && Only(part, kIdentifier) && !Only(part, kDigits));
    });
    if (!good) return refuse();
    patch = patch.substr(0, dash);
  }
  const std::array<std::string_view, 3> numbers = {parts[0], parts[1], patch};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::optional<std::uint64_t> number = Number(numbers[i]);
    if (!number) return refuse();
    version.numbers_[i] = *number;
  }
  return version;
}

Result<Version> Version::ParseLoosely(std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('v')) rest.remove_prefix(1);
  const std::vector<std::string_view> parts = SplitInThree(rest);
  std::string joined;
  for (std::string_view part : parts) {
    if (part.size() > 1) {
      part.remove_prefix(std::min(part.find_first_not_of('0'), part.size()));
      if (part.empty() || !Only(part.substr(0, 1), kDigits)) joined += '0';
    }
    joined.append(part).append(".");
  }
  if (parts.size() < 3 && parts.back().find_first_of("+-") != std::string_view::npos) {
    return Invalid("a short version has no pre-release or build part, got \"" + std::string(text) +
                   "\"");
  }
  for (std::size_t i = parts.size(); i < 3; ++i) joined += "0.";
  joined.pop_back();
  return Parse(joined);
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (const auto order = a.numbers_[i] <=> b.numbers_[i]; order != 0) return order;
  }
  // A version with a pre-release part comes before the one without.
  if (a.pre_release_.empty() || b.pre_release_.empty()) {
    return b.pre_release_.size() <=> a.pre_release_.size();
  }
  return std::lexicographical_compare_three_way(
      a.pre_release_.begin(), a.pre_release_.end(), b.pre_release_.begin(), b.pre_release_.end(),
      [](const Version::Part& x, const Version::Part& y) {
        if (x.is_number != y.is_number) return y.is_number <=> x.is_number;
        return x.is_number ? x.number <=> y.number : x.text <=> y.text;
      });
}

void Version::AddTo(Digester& digester) const {
  for (const std::uint64_t number : numbers_) digester.Add(number);
  digester.Add(pre_release_.size());
  for (const Part& part : pre_release_) {
    digester.Add(part.is_number ? 1U : 0U);
    digester.Add(part.number);
    digester.Add(part.text);
  }
}

Result<Amount> Amount::Parse(std::string_view text) {
  const Pieces pieces = Split(text);
  std::string with_digit;
  if (!pieces.any_digit && !text.empty()) {  // "Ki", "." and "-" are 0 to Kubernetes
    with_digit = "0" + std::string(pieces.suffix);
    text = with_digit;
  }
  BERTH_TRY(const Quantity value, Quantity::Parse(text));
  Amount amount;
  amount.value_ = value;
  const int digits =
      static_cast<int>(std::min<std::size_t>(pieces.whole.size() + pieces.fraction.size(), 1000));
  const int binary = BinaryExponent(pieces.suffix);
  if (binary > 0) {
    amount.decimal_ = !pieces.fraction.empty() || digits + binary * 3 / 10 + 1 > 15;
    amount.exponent_ = amount.decimal_ ? -9 : 0;
    return amount;
  }
  amount.exponent_ = DecimalExponent(pieces.suffix) - static_cast<int>(pieces.fraction.size());
  amount.decimal_ = digits > 18 || amount.exponent_ < -9;
  if (amount.decimal_) amount.exponent_ = -9;
  const std::optional<std::int64_t> units = value.Exactly(0);
  amount.exact_ = amount.exponent_ <= kMostExponent && units != kAbove && units != -kAbove;
  if (!amount.exact_) amount.exponent_ = 0;
  return amount;
}

Amount Amount::Of(std::int64_t units) {
  Amount amount;
  amount.value_ = *Quantity::Parse(std::to_string(units));
  amount.exact_ = units != kAbove && units > -kAbove;
  return amount;
}

int Amount::sign() const { return value_.sign(); }

std::optional<std::int64_t> Amount::AsInteger() const {
  if (decimal_ || exponent_ < 0) return std::nullopt;
  return value_.Exactly(0);
}

double Amount::AsDouble() const {
  const double base = value_.Nearest(exponent_);
  return exponent_ == 0 ? base : base * PowerOfTen(exponent_);
}

std::optional<Amount> Amount::Plus(const Amount& other) const {
  const std::optional<Quantity> sum = Quantity::Sum(value_, other.value_);
  if (!sum || !exact_ || !other.exact_) return std::nullopt;
  const bool integers = !decimal_ && !other.decimal_;
  if (integers && other.sign() == 0) return *this;
  if (integers && sign() == 0) return other;
  Amount amount;
  amount.value_ = *sum;
  amount.exponent_ = std::min(exponent_, other.exponent_);
  amount.decimal_ = !integers || !fits(amount.exponent_) || !other.fits(amount.exponent_) ||
                    !amount.fits(amount.exponent_);
  return amount;
}

std::optional<Amount> Amount::Minus(const Amount& other) const {
  Amount negative = other;
  negative.value_ = -other.value_;
  return Plus(negative);
}

void Amount::AddTo(Digester& digester) const {
  for (const int exponent : {-9, -3, 0}) {
    const auto exactly = value_.Exactly(exponent);
    digester.Add(exactly ? 1U : 0U);
    digester.Add(static_cast<std::uint64_t>(exactly.value_or(0)));
  }
  digester.Add(std::bit_cast<std::uint64_t>(value_.Nearest(0)));
  digester.Add(static_cast<std::uint64_t>(exponent_));
  digester.Add((decimal_ ? 2U : 0U) + (exact_ ? 1U : 0U));
}

}  // namespace berth::cel
