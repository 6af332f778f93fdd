// SPDX-License-Identifier: Apache-2.0
//
// The maps of an evaluation: the parts of a device, which are maps to it without being copied.
#pragma once

#include <cstddef>
#include <string_view>

#include "cel/value.h"

namespace berth::cel {

struct Found {
  bool found = false;
  Value value;
};

struct MapEntry {
  Value key;
  Value value;
};

bool IsDeviceField(std::string_view name);

std::size_t MapSize(const Value& map);

// Entries have the order of their names. Kubernetes has none. index < MapSize(map).
MapEntry MapEntryAt(const Value& map, std::size_t index, Arena& arena);

// As a selection sees it: a domain that the device does not have is an empty map.
Found FindInMap(const Value& map, const Value& key, Arena& arena);

// As `in` sees it.
bool MapHas(const Value& map, const Value& key, Arena& arena);

}  // namespace berth::cel
