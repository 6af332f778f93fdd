// SPDX-License-Identifier: Apache-2.0
//
// Filter: can this node take a pod of this shape?
#pragma once

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

// Implementations are stateless: any thread may call them.
class Filter {
 public:
  virtual ~Filter() = default;
  // kFits, or the first reason against it. A reason that no eviction resolves takes precedence over
  // one that an eviction resolves.
  [[nodiscard]] virtual Reason Check(const Node& node, const RequestShape& shape) const = 0;
};

}  // namespace berth
