// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/refused_ask.h"

#include <algorithm>

namespace berth {

bool RefusedAsk::HasGpusOf(const PodRequest& pod) const {
  if (gpus != pod.shape.gpus) return false;
  return std::ranges::equal(containers, pod.containers, {}, {}, &ContainerAsk::gpus);
}

bool RefusedAsk::Covers(const PodRequest& pod) const {
  return pod.shape.cpu_milli >= cpu_milli && pod.shape.memory_bytes >= memory_bytes &&
         HasGpusOf(pod);
}

std::optional<RefusedAsk> RefusedAskOf(const PodRequest& pod) {
  if (!pod.shape.wants_gpu() || pod.containers.size() > RefusedAsk::kMostContainers) {
    return std::nullopt;
  }
  RefusedAsk ask{.gpus = pod.shape.gpus,
                 .containers = {},
                 .cpu_milli = pod.shape.cpu_milli,
                 .memory_bytes = pod.shape.memory_bytes};
  for (const ContainerAsk& container : pod.containers) ask.containers.push_back(container.gpus);
  return ask;
}

}  // namespace berth
