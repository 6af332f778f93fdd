// SPDX-License-Identifier: Apache-2.0
//
// Ports: what the Extender needs from outside. main.cc chooses the adapters, tests bring fakes.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"
#include "scoring/reason.h"

namespace berth {

// Tells the cluster that a pod runs on a node. Any thread may call it, several at a time; it may
// block.
class PodBinder {
 public:
  virtual ~PodBinder() = default;
  // Success means verified: the pod is bound to placement.node. Any Error means that it is not.
  virtual Status Bind(const PodRequest& pod, const Placement& placement) = 0;
};

enum class Verb { kFilter, kPrioritize, kPreempt, kBind };

// One answer that was given. Views: valid during the call only.
struct Decision {
  Verb verb = Verb::kFilter;
  const PodId* pod = nullptr;
  std::size_t candidates = 0;            // nodes asked about
  std::size_t fitting = 0;               // of them
  Reason first_reason = Reason::kFits;   // of the first node that does not fit
  const Placement* placement = nullptr;  // bind: what was granted
  const Error* error = nullptr;          // bind: why not
};

// Where decisions leave to: log, metrics. Any thread may call it; it must not block.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  virtual void Record(const Decision& decision) = 0;
};

}  // namespace berth
