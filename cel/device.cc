// SPDX-License-Identifier: Apache-2.0
#include "cel/device.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

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

// Puts the value at its place in order.
template <class T>
void Set(std::vector<Device::Domain<T>>& domains, std::string_view domain, std::string_view id,
         T value) {
  auto at = std::ranges::lower_bound(domains, domain, {}, &Device::Domain<T>::name);
  if (at == domains.end() || at->name != domain) {
    at = domains.insert(at, Device::Domain<T>{std::string(domain), {}});
  }
  auto& entries = at->entries;
  const auto id_of = [](const auto& entry) -> std::string_view { return entry->id; };
  const auto entry = std::ranges::lower_bound(entries, id, {}, id_of);
  auto added =
      std::make_shared<const Device::Named<T>>(Device::Named<T>{std::string(id), std::move(value)});
  if (entry != entries.end() && (*entry)->id == id) {
    *entry = std::move(added);
  } else {
    entries.insert(entry, std::move(added));
  }
}

std::pair<std::string_view, std::string_view> SplitName(std::string_view name,
                                                        std::string_view driver) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {driver, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

// Of texts and whole numbers; others are told apart by comparing them.
std::size_t HashOf(const AttributeValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    return std::hash<std::string_view>()(*text);
  }
  if (const auto* const number = std::get_if<std::int64_t>(&value)) {
    return std::hash<std::int64_t>()(*number);
  }
  return value.index();
}
std::size_t HashOf(const Amount& amount) {
  return std::hash<std::int64_t>()(amount.AsInteger().value_or(0));
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

// NVIDIA's driver publishes these, and Kubernetes' own names for addresses.
bool IsIdentity(std::string_view id) {
  return id == "uuid" || id == "parentUUID" || id == "pciBusID" || id == "pcieRoot";
}

void Device::SetAttribute(std::string_view name, AttributeValue value) {
  const auto [domain, id] = SplitName(name, driver_);
  Set(attributes_, domain, id, std::move(value));
}

void Device::SetCapacity(std::string_view name, Amount amount) {
  const auto [domain, id] = SplitName(name, driver_);
  Set(capacity_, domain, id, amount);
}

const AttributeValue* Device::attribute(std::string_view domain, std::string_view id) const {
  const auto at = std::ranges::find(attributes_, domain, &Domain<AttributeValue>::name);
  if (at == attributes_.end()) return nullptr;
  const auto id_of = [](const auto& entry) -> std::string_view { return entry->id; };
  const auto entry = std::ranges::find(at->entries, id, id_of);
  return entry == at->entries.end() ? nullptr : &(*entry)->value;
}

template <class T>
void SharedValues::ShareAll(std::vector<Device::Domain<T>>& domains, Known<T>& known) {
  // Of values that hash alike so many are compared; more are kept for each device by itself.
  constexpr int kMostAlike = 8;
  if (known.known.size() >= known.sweep_at) {
    std::erase_if(known.known, [](const auto& entry) { return entry.second.expired(); });
    known.sweep_at = std::max<std::size_t>(1024, 2 * known.known.size());
  }
  for (auto& domain : domains) {
    for (auto& entry : domain.entries) {
      const std::size_t hash = std::hash<std::string_view>()(entry->id) * 31 + HashOf(entry->value);
      int compared = 0;
      bool is_known = false;
      auto [at, end] = known.known.equal_range(hash);
      for (; at != end && !is_known && compared < kMostAlike; ++at, ++compared) {
        const auto other = at->second.lock();
        is_known = other != nullptr && other->id == entry->id && other->value == entry->value;
        if (is_known) entry = other;
      }
      if (!is_known && compared < kMostAlike) known.known.emplace(hash, entry);
    }
    domain.entries.shrink_to_fit();
  }
  domains.shrink_to_fit();
}

void SharedValues::Share(Device& device) {
  ShareAll(device.attributes_, attributes_);
  ShareAll(device.capacity_, amounts_);
}

}  // namespace berth::cel
