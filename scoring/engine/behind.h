// SPDX-License-Identifier: Apache-2.0
//
// Behind: what puts a node behind others for a pod, whatever the scorers say of it
// (EvaluationTable::Totals). No condition: where all nodes are behind, the least so is taken. Pure
// functions.
#pragma once

#include <string>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// The first counts most.
struct Behind {
  bool gives_parts = false;  // of GPUs, and the pod does not say what it needs of one
  int crowd = 0;             // CrowdOn
  int penalty = 0;           // NeighbourPenalty

  // 0 = nothing does; higher is farther behind.
  [[nodiscard]] int rank() const;
  // For people, all that does; "" if nothing does.
  [[nodiscard]] std::string text() const;
};

// Whether it may be that a node is behind another for pods of that shape.
bool MayPutBehind(const RequestShape& shape);

// Requires: the shape fits the node.
Behind BehindOn(const Node& node, const RequestShape& shape);

}  // namespace berth
