// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/held_bytes.h"

#include "base/text.h"

namespace berth {
namespace {

// The longest word of Kubernetes: a domain, and the name of a resource in it.
constexpr std::size_t kMostWordBytes = 317;

std::string TooLarge(std::size_t bytes) {
  return "conditions and annotations: want at most " + std::to_string(kMostRequestBytes >> 10) +
         " KiB, got " + std::to_string(bytes >> 10);
}

// Copies a value without what may be long in it: so what is copied is bounded, whatever members a
// value may get.
void CopyOutline(const std::string& from, std::string& to) {
  if (from.size() <= kMostWordBytes) to = from;
}
template <class T>
void CopyOutline(const std::vector<T>&, std::vector<T>&) {}
template <class T>
void CopyOutline(const std::shared_ptr<T>&, std::shared_ptr<T>&) {}
void CopyOutline(const ModelRules&, ModelRules&) {}
void CopyOutline(const Mobility&, Mobility&) {}  // where it may go is left out
// Their names are bounded where they are read; devices are few (kMaxMigDevicesPerPod).
void CopyOutline(const PodId& from, PodId& to) { to = from; }
void CopyOutline(const Gang& from, Gang& to) { to = from; }
void CopyOutline(const GpuAsk& from, GpuAsk& to) { to = from; }
template <class T>
void CopyOutline(const T& from, T& to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    to = from;
  } else {
    ForEachMemberOf(
        from, to, [](const auto& one, const auto& other) { CopyOutline(one.value, other.value); });
  }
}

}  // namespace

PodRequest OutlineOf(const PodRequest& pod, std::string_view why) {
  PodRequest outline;
  CopyOutline(pod, outline);
  outline.refusal = why;
  return outline;
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
