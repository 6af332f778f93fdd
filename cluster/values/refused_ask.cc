// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/refused_ask.h"

#include <algorithm>

namespace berth {

namespace {

// have: a PodRequest's shape, or a RefusedAsk.
template <class Have>
bool AsksNoLess(const Have& have, const OtherResources* others, const RefusedAsk& ask) {
  return have.gpus == ask.gpus && have.cpu_milli >= ask.cpu_milli &&
         have.memory_bytes >= ask.memory_bytes && have.ephemeral_bytes >= ask.ephemeral_bytes &&
         std::ranges::all_of(ask.others, [others](const OtherResource& other) {
           const auto* const has = others == nullptr ? nullptr : FindOther(*others, other.name);
           return has != nullptr && has->amount >= other.amount;
         });
}

}  // namespace

bool RefusedAsk::Covers(const PodRequest& pod) const {
  return AsksNoLess(pod.shape, pod.others.get(), *this) &&
         std::ranges::equal(containers, pod.containers, {}, {}, &ContainerAsk::gpus);
}

bool RefusedAsk::Covers(const RefusedAsk& other) const {
  return AsksNoLess(other, &other.others, *this) && containers == other.containers;
}

std::optional<RefusedAsk> RefusedAskOf(const PodRequest& pod) {
  if (!pod.shape.wants_gpu() || pod.containers.size() > RefusedAsk::kMostContainers) {
    return std::nullopt;
  }
  RefusedAsk ask{.gpus = pod.shape.gpus,
                 .containers = {},
                 .cpu_milli = pod.shape.cpu_milli,
                 .memory_bytes = pod.shape.memory_bytes,
                 .ephemeral_bytes = pod.shape.ephemeral_bytes};
  if (pod.others != nullptr) ask.others = *pod.others;
  for (const ContainerAsk& container : pod.containers) ask.containers.push_back(container.gpus);
  return ask;
}

}  // namespace berth
