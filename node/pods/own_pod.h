// SPDX-License-Identifier: Apache-2.0
//
// OwnPod: what the agent knows of one pod of its node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/pods/plan.h"

namespace berth::node {

struct OwnContainer {
  std::string name;
  bool ends_first = false;  // an init container that is no sidecar
  // By extended resource ("nvidia.com/gpu") how many are asked for.
  std::map<std::string, std::size_t> asks;
  bool running = false;
  bool reports_devices = false;  // its status has allocatedResourcesStatus
};

struct OwnPod {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string created;  // as in the API: texts in the order of time
  bool over = false;    // Succeeded or Failed
  bool ending = false;  // it has a deletionTimestamp
  // Those that ask for an extended resource, in the kubelet's order: init containers first.
  std::vector<OwnContainer> containers;
  std::optional<PodPlan> plan;  // of a pod that Berth bound
  std::string plan_problem;     // why there is none although there is an annotation
  std::string given;            // berth.dev/given
  Instant bound{};              // when the watch brought it first; zero: it was there before

  [[nodiscard]] bool Asks(const std::string& resource) const;
};

// A Pod as JSON. Error: kInvalidArgument; a part that cannot be read counts as not there.
Result<OwnPod> ParseOwnPod(std::string_view json, std::string_view node);

}  // namespace berth::node
