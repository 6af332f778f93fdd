// SPDX-License-Identifier: Apache-2.0
#include "cel/amount.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>

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
  // "Ki", "." and "-" are 0 to Kubernetes.
  const std::size_t suffix = std::min(text.find_first_not_of("+-."), text.size());
  const bool any_digit = text.substr(0, suffix + 1).find_first_of(kDigits) != text.npos;
  const std::string zero = any_digit || text.empty() ? "" : "0" + std::string(text.substr(suffix));
  Amount amount;
  BERTH_TRY(amount.value_, Quantity::Parse(zero.empty() ? text : zero));
  return amount;
}

bool Amount::exact() const {
  constexpr std::int64_t kAbove =
      std::numeric_limits<std::int64_t>::max();  // what Quantity caps at
  const std::optional<std::int64_t> units = value_.Exactly(0);
  return units != kAbove && units != -kAbove;
}

void Amount::AddTo(Digester& digester) const {
  for (const int exponent : {-9, -3, 0}) {
    const auto exactly = value_.Exactly(exponent);
    digester.Add(exactly ? 1U : 0U);
    digester.Add(static_cast<std::uint64_t>(exactly.value_or(0)));
  }
  digester.Add(std::bit_cast<std::uint64_t>(value_.Nearest()));
}

}  // namespace berth::cel
