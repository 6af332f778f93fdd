// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/eviction_json.h"

#include "server/wire/json/json_text.h"

namespace berth::wire {

std::string EncodeEviction(const PodId& pod) {
  std::string out = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":)";
  AppendString(out, pod.name);
  out += R"(,"namespace":)";
  AppendString(out, pod.namespace_name);
  out += R"(},"deleteOptions":{"preconditions":{"uid":)";
  AppendString(out, pod.uid);
  out += "}}}";
  return out;
}

}  // namespace berth::wire
