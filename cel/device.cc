// SPDX-License-Identifier: Apache-2.0
#include "cel/device.h"

#include <algorithm>
#include <functional>
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
