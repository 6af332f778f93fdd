// SPDX-License-Identifier: Apache-2.0
#include "cel/shared_values.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace berth::cel {
namespace {

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

bool IsSame(const AttributeValue& a, const AttributeValue& b) { return a == b; }
bool IsSame(const Amount& a, const Amount& b) { return a.IsSame(b); }

}  // namespace

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
        is_known = other != nullptr && other->id == entry->id && IsSame(other->value, entry->value);
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
