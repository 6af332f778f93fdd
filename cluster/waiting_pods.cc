// SPDX-License-Identifier: Apache-2.0
#include "cluster/waiting_pods.h"

#include <utility>

namespace berth {
namespace {

std::string FullName(std::string_view namespace_name, std::string_view name) {
  return std::string(namespace_name).append("/").append(name);
}

}  // namespace

WaitingPods::Pods WaitingPods::Current() const {
  const MutexLock lock(mutex_);
  Pods pods;
  pods.reserve(by_name_.size());
  for (const auto& [name, pod] : by_name_) pods.push_back(pod);
  return pods;
}

void WaitingPods::PutInto(ByName& by_name, WaitingPod pod) {
  std::string name = FullName(pod.namespace_name, pod.name);
  if (!pod.waits || pod.pod.shape.mig() == nullptr) {
    by_name.erase(name);
  } else {
    by_name.insert_or_assign(std::move(name),
                             std::make_shared<const PodRequest>(std::move(pod.pod)));
  }
}

void WaitingPods::Put(WaitingPod pod) {
  const MutexLock lock(mutex_);
  PutInto(by_name_, std::move(pod));
}

void WaitingPods::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  by_name_.erase(FullName(namespace_name, name));
}

void WaitingPods::Reset(std::vector<WaitingPod> pods) {
  ByName by_name;
  for (WaitingPod& pod : pods) PutInto(by_name, std::move(pod));
  const MutexLock lock(mutex_);
  by_name_.swap(by_name);
}

}  // namespace berth
