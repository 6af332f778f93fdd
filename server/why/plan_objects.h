// SPDX-License-Identifier: Apache-2.0
//
// The pods that controllers make of their objects: docs/plan.md ("Objects that make pods") has each
// kind. They have the labels, annotations and owners by which their controllers name gangs.
// Sources: the API types of batch/v1, jobset.x-k8s.io/v1alpha2, leaderworkerset.x-k8s.io/v1,
// kubeflow.org/v1 and v2beta1, ray.io/v1, trainer.kubeflow.org/v1alpha1,
// sparkoperator.k8s.io/v1beta2, grove.io/v1alpha1.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

// Pods that are alike but for their numbers.
struct PodSet {
  using Texts = std::vector<std::pair<std::string, std::string>>;

  const Json* pod = nullptr;  // the template, in the object
  std::string path = {};      // of the template, for errors
  std::string name = {};      // they are NAME-0, NAME-1, ...
  std::int64_t count = 1;
  Texts labels = {}, annotations = {};
  std::string owner_kind = {}, owner_api = {}, owner_name = {};  // their controller; "": none
  std::string scheduler = {};                                    // if the template names none
  bool on_each_node = false;
  bool at_once = false;  // a StatefulSet that does not wait for one pod before it makes the next
  // So many pods there are before some of these run, and what to do for a gang of more. Empty: all.
  std::optional<std::int64_t> at_first = {};
  std::string late = {};
};

struct ObjectPods {
  std::vector<PodSet> sets;
  // What says how many of them start together: an object of the dialects, with the UID that the
  // pods name; null: nothing does.
  Json group = nullptr;
  std::deque<Json> made = {};  // templates of these sets that are not in the object
  std::string unknown = {};    // why its pods are not known; "": they are
};

// The UID of an object that is only asked about.
std::string PlannedUid(std::string_view name);

// most: so many pods are enough; of an object with more any number beyond it is returned. Nothing:
// no pods of that kind are known. Error: kInvalidArgument with the path of the field.
Result<std::optional<ObjectPods>> PodsOf(const Json& object, std::string_view kind,
                                         const std::string& path, std::int64_t most);
// Whether the object stands for others, which ForEachPart names.
bool HasParts(std::string_view kind);
// The LeaderWorkerSets of a DisaggregatedSet, the PodGangs of a PodCliqueSet: at most so many. A
// PodGang has the cliques of its pods beside its groups. Error: there are more, or `take`'s.
// Requires: HasParts.
using TakePart = std::function<Status(const Json& part, const std::string& kind)>;
Status ForEachPart(const Json& object, std::string_view kind, const std::string& path,
                   std::size_t most, const TakePart& take);
// The number in the field, at most one more than `most`; unsaid: it is not there. Error:
// kInvalidArgument with the path of the field.
Result<std::int64_t> CountOf(const Json* of, const std::string& path, const char* key,
                             std::int64_t most, std::int64_t unsaid = 1);
// Why a gang of so many, which the pod names after its owner, never gathers; "" = it does.
std::string WhyLate(const PodSet& set, const Json& pod, std::optional<int> minimum);

// Fields of objects that somebody wrote: of whatever type, and perhaps not there.

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

// Those of the fields that are there, as they are.
inline void CopyFields(const Json* from, std::initializer_list<const char*> keys, Json& to) {
  for (const char* const key : keys) {
    if (const Json* const found = FieldOf(from, key); found != nullptr) to[key] = *found;
  }
}

// The items of a list; none where it is none.
inline const Json& ItemsOf(const Json* object, const char* key) {
  static const Json kNone = Json::array();
  const Json* const found = FieldOf(object, key);
  return found != nullptr && found->is_array() ? *found : kNone;
}

}  // namespace berth::wire
