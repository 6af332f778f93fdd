// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the agent say of the node, and the annotations that follow from it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "node/facts/node_facts.h"
#include "node/publish/node_annotations.h"

namespace berth::node {

inline constexpr std::size_t kMostCarried = 64;     // resources that are named
inline constexpr std::size_t kMostUnhealthy = 256;  // devices that are named; more are not

struct WhatIsSaid {
  std::set<std::string> carries;                           // resources
  std::map<std::string, std::set<std::string>> unhealthy;  // by resource: devices
  std::string kubelet;                                     // berth.dev/kubelet; "" = not known
  std::shared_ptr<const NodeFacts> facts = std::make_shared<const NodeFacts>();

  // Of replicas ("GPU-...::3") the device counts. False: nothing has changed.
  bool SetUnhealthy(const std::string& resource, std::set<std::string> ids);
};

// mig_single: the node's MIG devices are given as nvidia.com/gpu, by its labels.
WantedAnnotations Wanted(const WhatIsSaid& says, bool mig_single);

}  // namespace berth::node
