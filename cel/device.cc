// SPDX-License-Identifier: Apache-2.0
#include "cel/device.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace berth::cel {
namespace {

// Puts the value at its place in order.
template <class T>
void Set(std::vector<Device::Domain<T>>& domains, std::string_view domain, std::string_view id,
         T value) {
  auto at = std::ranges::lower_bound(domains, domain, {}, &Device::Domain<T>::name);
  if (at == domains.end() || at->name != domain) {
    at = domains.insert(at, Device::Domain<T>{std::string(domain), {}});
  }
  auto& entries = at->entries;
  const auto entry = std::ranges::lower_bound(entries, id, {}, &Device::Named<T>::id);
  if (entry != entries.end() && entry->id == id) {
    entry->value = std::move(value);
  } else {
    entries.insert(entry, {std::string(id), std::move(value)});
  }
}

std::pair<std::string_view, std::string_view> SplitName(std::string_view name,
                                                        std::string_view driver) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {driver, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

}  // namespace

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
  const auto entry = std::ranges::find(at->entries, id, &Named<AttributeValue>::id);
  return entry == at->entries.end() ? nullptr : &entry->value;
}

}  // namespace berth::cel
