// SPDX-License-Identifier: Apache-2.0
#include "cel/maps.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace berth::cel {
namespace {

constexpr std::array<std::string_view, 4> kFields = {"allowMultipleAllocations", "attributes",
                                                     "capacity", "driver"};

Value FieldOf(const Device& device, std::size_t index) {
  Value value = Value::Of(device);
  switch (index) {
    case 0:
      return Value::Bool(device.allow_multiple_allocations());
    case 1:
      value.kind = Kind::kAttributes;
      return value;
    case 2:
      value.kind = Kind::kCapacities;
      return value;
    default:
      return Value::Text(device.driver());
  }
}

Value Item(std::int64_t item) { return Value::Int(item); }
Value Item(bool item) { return Value::Bool(item); }
Value Item(const std::string& item) { return Value::Text(item); }
Value Item(const Version& item) { return Value::Of(item); }

template <class T>
Value ValueOfOne(const T& value, Arena&) {
  return Item(value);
}

template <class T>
Value ValueOfOne(const std::vector<T>& values, Arena& arena) {
  std::vector<Value> items;
  items.reserve(values.size());
  for (const auto& value : values) items.push_back(Item(value));
  return Value::Of(arena.NewList(std::move(items)));
}

Value ValueOf(const AttributeValue& attribute, Arena& arena) {
  return std::visit([&arena](const auto& value) { return ValueOfOne(value, arena); }, attribute);
}
Value ValueOf(const Amount& amount, Arena&) { return Value::Of(amount); }

template <class T>
MapEntry DomainAt(const std::vector<Device::Domain<T>>& domains, std::size_t index) {
  return {Value::Text(domains[index].name), Value::Of(domains[index])};
}

template <class T>
MapEntry EntryAt(const Device::Domain<T>& domain, std::size_t index, Arena& arena) {
  const auto& entry = *domain.entries[index];
  if (IsIdentity(entry.id)) arena.SeeIdentity();
  return {Value::Text(entry.id), ValueOf(entry.value, arena)};
}

// Devices have 32 attributes at most, so that looking at each is as fast as anything.
template <class T>
Found FindDomain(const std::vector<Device::Domain<T>>& domains, const Value& name) {
  if (!name.is(Kind::kString)) return {};
  for (const auto& domain : domains) {
    if (domain.name == name.text()) return {true, Value::Of(domain)};
  }
  return {};
}

template <class T>
Found FindEntry(const Device::Domain<T>& domain, const Value& id, Arena& arena) {
  if (!id.is(Kind::kString)) return {};
  for (const auto& entry : domain.entries) {
    if (entry->id != id.text()) continue;
    if (IsIdentity(entry->id)) arena.SeeIdentity();
    return {true, ValueOf(entry->value, arena)};
  }
  return {};
}

// What is there, without the empty map for a domain that is not.
Found FindThere(const Value& map, const Value& key, Arena& arena) {
  switch (map.kind) {
    case Kind::kDevice:
      for (std::size_t i = 0; key.is(Kind::kString) && i < kFields.size(); ++i) {
        if (key.text() == kFields[i]) return {true, FieldOf(*map.device, i)};
      }
      return {};
    case Kind::kAttributes:
      return FindDomain(map.device->attributes(), key);
    case Kind::kCapacities:
      return FindDomain(map.device->capacity(), key);
    case Kind::kAttributeDomain:
      return FindEntry(*map.attributes, key, arena);
    default:
      return FindEntry(*map.capacities, key, arena);
  }
}

}  // namespace

bool IsDeviceField(std::string_view name) {
  return std::ranges::find(kFields, name) != kFields.end();
}

std::size_t MapSize(const Value& map) {
  switch (map.kind) {
    case Kind::kDevice:
      return kFields.size();
    case Kind::kAttributes:
      return map.device->attributes().size();
    case Kind::kCapacities:
      return map.device->capacity().size();
    case Kind::kAttributeDomain:
      return map.attributes->entries.size();
    default:
      return map.capacities->entries.size();
  }
}

MapEntry MapEntryAt(const Value& map, std::size_t index, Arena& arena) {
  switch (map.kind) {
    case Kind::kDevice:
      return {Value::Text(kFields[index]), FieldOf(*map.device, index)};
    case Kind::kAttributes:
      return DomainAt(map.device->attributes(), index);
    case Kind::kCapacities:
      return DomainAt(map.device->capacity(), index);
    case Kind::kAttributeDomain:
      return EntryAt(*map.attributes, index, arena);
    default:
      return EntryAt(*map.capacities, index, arena);
  }
}

Found FindInMap(const Value& map, const Value& key, Arena& arena) {
  static const AttributeDomain kNothing;
  const Found found = FindThere(map, key, arena);
  const bool of_domains = map.is(Kind::kAttributes) || map.is(Kind::kCapacities);
  return found.found || !of_domains ? found : Found{true, Value::Of(kNothing)};
}

bool MapHas(const Value& map, const Value& key, Arena& arena) {
  return FindThere(map, key, arena).found;
}

}  // namespace berth::cel
