// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/request_size.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "cluster/values/held_bytes.h"

namespace berth {
namespace {

// The longest word of Kubernetes: a domain, and the name of a resource in it.
constexpr std::size_t kMostWordBytes = 317;

std::string TooLarge(std::size_t bytes) {
  return "conditions and annotations: want at most " + std::to_string(kMostRequestBytes >> 10) +
         " KiB, got " + std::to_string(bytes >> 10);
}

}  // namespace

PodRequest OutlineOf(const PodRequest& pod, std::string_view why) {
  PodRequest outline;
  outline.id = pod.id;
  RequestShape& shape = outline.shape;
  shape = pod.shape;
  shape.models.clear();
  shape.model_rules.clear();
  shape.gpu_rules.clear();
  shape.spread = Spread::kNone;
  shape.workload.clear();
  shape.nodes = {};
  shape.neighbours = {};
  for (std::string* const word : {&shape.gpu_resource, &shape.share_agent}) {
    if (word->size() > kMostWordBytes) word->clear();
  }
  outline.refusal = why;
  outline.priority = pod.priority;
  outline.may_preempt = pod.may_preempt;
  outline.gang = pod.gang;
  if (pod.scheduler.size() <= kMostWordBytes) outline.scheduler = pod.scheduler;
  outline.container_count = pod.container_count;
  outline.init_container_count = pod.init_container_count;
  outline.belongs_on_any_node = pod.belongs_on_any_node;
  outline.checkpointed = pod.checkpointed;
  outline.own_to_scheduler = pod.own_to_scheduler;
  if (pod.device_class.size() <= kMostWordBytes) outline.device_class = pod.device_class;
  return PodRequest(std::as_const(outline));  // a copy is as large as it has to be
}

void BoundRequest(PodRequest& pod) {
  if (pod.refusal.size() > kMostRefusalBytes) {
    std::string(Shortened(pod.refusal, kMostRefusalBytes)).swap(pod.refusal);
  }
  const std::size_t group = pod.gang.id.text().size();
  if (group > kMostGroupNameBytes) {
    Gang none;
    std::swap(pod.gang, none);
    if (pod.refusal.empty() && pod.shape.wants_gpu()) {
      pod.refusal = "name of the pod's group: want at most " + std::to_string(kMostGroupNameBytes) +
                    " bytes, got " + std::to_string(group);
    }
  }
  if (pod.labels != nullptr && HeldBytes(*pod.labels) > kMostLabelBytes) pod.labels = nullptr;
  const std::size_t bytes = HeldBytes(pod);
  if (bytes <= kMostRequestBytes) return;
  const bool is_refused = pod.shape.wants_gpu() || !pod.refusal.empty();
  PodRequest outline = OutlineOf(pod, !is_refused           ? ""
                                      : pod.refusal.empty() ? TooLarge(bytes)
                                                            : pod.refusal);
  std::swap(pod, outline);
}

}  // namespace berth
