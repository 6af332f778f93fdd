// SPDX-License-Identifier: Apache-2.0
#include "scoring/crowding.h"

#include <algorithm>
#include <limits>
#include <vector>

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

// On the last of as many GPUs as the pod needs, the least crowded first.
int LeastCrowdOfShares(const Node& node, const RequestShape& shape) {
  std::vector<int> crowds;
  ForEachGpu(FreeGpus(node, shape),
             [&](int gpu) { crowds.push_back(CrowdOnGpu(node, gpu, shape)); });
  const auto last = static_cast<std::size_t>(shape.gpu_count()) - 1;
  if (last >= crowds.size()) return std::numeric_limits<int>::max();
  std::ranges::sort(crowds);
  return crowds[last];
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
    if (shape.is_share()) return LeastCrowdOfShares(node, shape);
    const bool whole = std::holds_alternative<WholeGpus>(shape.gpus);
    if (whole && !node.spec().gives_parts()) return 0;
  }
  return PodsOf(node, shape, [](const PodRecord&) { return true; });
}

}  // namespace berth
