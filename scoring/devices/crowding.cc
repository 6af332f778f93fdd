// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/crowding.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "scoring/devices/device_picker.h"

namespace berth {
namespace {

// Of the pods of the workload on the node, those for which `counts` holds.
template <class Counts>
int PodsOf(const Node& node, const RequestShape& shape, Counts counts) {
  return static_cast<int>(std::ranges::count_if(node.pods(), [&](const auto& pod) {
    return pod->pod.shape.workload == shape.workload && counts(*pod);
  }));
}

}  // namespace

int CrowdOnGpu(const Node& node, int gpu, const RequestShape& shape) {
  if (shape.spread != Spread::kCard) return 0;
  return PodsOf(node, shape, [gpu](const PodRecord& pod) {
    return std::ranges::find(pod.placement.grants, gpu, &DeviceGrant::gpu) !=
               pod.placement.grants.end() ||
           std::ranges::find(pod.placement.places_on, gpu) != pod.placement.places_on.end();
  });
}

int CrowdOnGpus(const Node& node, GpuMask gpus, const RequestShape& shape) {
  std::vector<int> crowds;
  ForEachGpu(gpus, [&](int gpu) { crowds.push_back(CrowdOnGpu(node, gpu, shape)); });
  const auto last = static_cast<std::size_t>(shape.gpu_count()) - 1;
  BERTH_CHECK(last < crowds.size());
  std::ranges::nth_element(crowds, crowds.begin() + static_cast<std::ptrdiff_t>(last));
  return crowds[last];
}

int CrowdOn(const Node& node, const RequestShape& shape) {
  if (shape.spread == Spread::kNone) return 0;
  if (shape.spread == Spread::kCard) {
    if (shape.is_share()) return CrowdOnGpus(node, FreeGpus(node, shape), shape);
    const bool whole = std::holds_alternative<WholeGpus>(shape.gpus);
    if (whole && !node.spec().gives_parts()) return 0;
  }
  return PodsOf(node, shape, [](const PodRecord&) { return true; });
}

}  // namespace berth
