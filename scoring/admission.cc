// SPDX-License-Identifier: Apache-2.0
#include "scoring/admission.h"

#include <algorithm>
#include <span>

namespace berth {

Reason Admits(const NodeSpec& node, const PodRequest& pod) {
  const NodeConstraints* const constraints = pod.constraints.get();
  if (!node.taints.empty()) {
    std::span<const Toleration> tolerations;
    if (constraints != nullptr) tolerations = constraints->tolerations;
    const bool all = std::ranges::all_of(
        node.taints, [tolerations](const Taint& taint) { return Tolerates(tolerations, taint); });
    if (!all) return Reason::kTaintNotTolerated;
  }
  if (constraints != nullptr && constraints->selects() &&
      !SelectsNode(*constraints, node.name, node.labels)) {
    return Reason::kNodeNotSelected;
  }
  return Reason::kFits;
}

bool AdmissionMatters(const Snapshot& snapshot, const PodRequest& pod) {
  return snapshot.tainted_nodes() > 0 || (pod.constraints != nullptr && pod.constraints->selects());
}

}  // namespace berth
