// SPDX-License-Identifier: Apache-2.0
#include "scoring/crowding.h"

#include <algorithm>
#include <limits>

#include "scoring/device_picker.h"

namespace berth {
namespace {

// Of the pods of the workload on the node, those for which `counts` holds.
template <class Counts>
int PodsOf(const Node& node, const RequestShape& shape, Counts counts) {
  return static_cast<int>(std::ranges::count_if(node.pods(), [&](const auto& pod) {
    return pod->pod.shape.workload == shape.workload && counts(*pod);
  }));
}

int LeastCrowdOfShares(const Node& node, const RequestShape& shape, const GpuShare& share) {
  int least = std::numeric_limits<int>::max();
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    const auto choice = ShareOn(node, gpu, share);
    if (choice && HasFree(node, gpu, *choice)) {
      least = std::min(least, CrowdOnGpu(node, gpu, shape));
    }
  }
  return least;
}

}  // namespace

int CrowdOnGpu(const Node& node, int gpu, const RequestShape& shape) {
  if (shape.spread != Spread::kCard) return 0;
  return PodsOf(node, shape, [gpu](const PodRecord& pod) {
    return std::ranges::find(pod.placement.grants, gpu, &DeviceGrant::gpu) !=
           pod.placement.grants.end();
  });
}

int CrowdOn(const Node& node, const RequestShape& shape) {
  if (shape.spread == Spread::kNone) return 0;
  if (shape.spread == Spread::kCard) {
    if (const auto* share = std::get_if<GpuShare>(&shape.gpus)) {
      return LeastCrowdOfShares(node, shape, *share);
    }
    const bool whole = std::holds_alternative<WholeGpus>(shape.gpus);
    if (whole && !node.spec().gives_parts()) return 0;
  }
  return PodsOf(node, shape, [](const PodRecord&) { return true; });
}

}  // namespace berth
