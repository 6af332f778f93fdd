// SPDX-License-Identifier: Apache-2.0
//
// The JSON of an Event about a pod, v1: what `kubectl describe pod` shows.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

struct PodEvent {
  PodId pod;
  bool warning = false;
  std::string reason;   // CamelCase, a few words
  std::string message;  // cut to 1024 bytes, the most that the API server takes
  WallTime time;
  std::string instance;  // who says so
};

// Requires: a name that is unique in the namespace.
std::string EncodeEvent(const PodEvent& event, std::string_view name);

}  // namespace berth::wire
