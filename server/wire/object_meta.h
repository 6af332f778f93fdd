// SPDX-License-Identifier: Apache-2.0
//
// The metadata that every Kubernetes object has: enough to tell which one it is when nothing else
// of it matters, or can be read.
#pragma once

#include <string>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"

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

// Error: kInvalidArgument for what is not JSON or has no name.
Result<ObjectMeta> DecodeObjectMeta(const PaddedText& text);

}  // namespace berth::wire
