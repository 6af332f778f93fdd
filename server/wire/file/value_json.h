// SPDX-License-Identifier: Apache-2.0
//
// Values as objects of the cluster file, by their descriptions (cluster/values/describe.h): a
// member with a key is written and read here, and nowhere else.
#pragma once

#include "cluster/values/describe.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

enum class Part : std::uint8_t {
  kFront,  // what stands in every object of the kind
  kRest,
};

// Adds the members of a part to the object. Values: PodId, RequestShape, PodRequest, Placement,
// NodeSpec and what they consist of.
template <class T>
void AddMembers(const T& value, Part part, Json& json);

// Both parts.
template <class T>
Json ObjectOf(const T& value) {
  Json json = Json::object();
  AddMembers(value, Part::kFront, json);
  AddMembers(value, Part::kRest, json);
  return json;
}

// Takes the members out of the object; what is absent stays.
template <class T>
void ReadMembers(Fields& fields, T& value);

// An object of one value.
template <class T>
Status ReadValue(const Json& json, const std::string& path, T& value) {
  Fields fields(json, path);
  ReadMembers(fields, value);
  return fields.Finish();
}
// The same, which is added to the list.
template <class T>
Status ReadItem(const Json& json, const std::string& path, std::vector<T>& list) {
  return ReadValue(json, path, list.emplace_back());
}

}  // namespace berth::wire
