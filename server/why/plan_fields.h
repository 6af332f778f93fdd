// SPDX-License-Identifier: Apache-2.0
//
// Fields of objects that somebody wrote: of whatever type, and perhaps not there.
#pragma once

#include <string>

#include "server/wire/json/strict_json.h"

namespace berth::wire {

// nullptr: the field is not there, or nothing has fields there.
inline const Json* FieldOf(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
inline const Json* FieldOf(const Json* object, const char* key) {
  return object == nullptr ? nullptr : FieldOf(*object, key);
}

// "": it is not there, or no text.
inline std::string WordOf(const Json* object, const char* key) {
  const Json* const found = FieldOf(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

// The items of a list; none where it is none.
inline const Json& ItemsOf(const Json* object, const char* key) {
  static const Json kNone = Json::array();
  const Json* const found = FieldOf(object, key);
  return found != nullptr && found->is_array() ? *found : kNone;
}

}  // namespace berth::wire
