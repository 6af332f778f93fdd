// SPDX-License-Identifier: Apache-2.0
//
// The metadata that every Kubernetes object has: enough to tell which one it is when nothing else
// of it matters, or can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

struct ObjectMeta {
  std::string namespace_name;  // empty: it is in none
  std::string name;
  std::string uid;
  std::string resource_version = {};
  std::string created = {};  // as Kubernetes writes times: a later one compares greater
  bool deleting = false;     // it has a deletionTimestamp
  std::vector<std::string> finalizers = {};

  // "namespace/name", or the name alone.
  [[nodiscard]] std::string FullName() const {
    return namespace_name.empty() ? name : namespace_name + "/" + name;
  }
};

// Names of Kubernetes' objects have at most 253 bytes, those of namespaces 63. UIDs have 36, those
// of static pods 32; where there is none Berth takes "namespace/name".
inline constexpr std::size_t kMostNameBytes = 253;
inline constexpr std::size_t kMostUidBytes = 2 * kMostNameBytes + 1;

// Whether the names of a pod are short enough to be kept: a client may send any.
// Error: kInvalidArgument "PLACE.uid: want at most ... bytes, got ...".
Status CheckNames(const PodId& id, std::string_view place);
Status CheckLength(std::string_view text, std::size_t most, std::string_view what);

// A resourceVersion as a number; 0 = it is none. Versions of one kind of object grow (Kubernetes
// 1.35 promises it, etcd always did) until the API server is restored from a backup; then
// everything is listed again.
std::int64_t VersionNumber(std::string_view resource_version);

// Error: kInvalidArgument for what is not JSON or has no name.
Result<ObjectMeta> DecodeObjectMeta(const PaddedText& text);

}  // namespace berth::wire
