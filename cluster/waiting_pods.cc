// SPDX-License-Identifier: Apache-2.0
#include "cluster/waiting_pods.h"

#include <utility>

#include "base/dns_name.h"

namespace berth {
WaitingPods::Pods WaitingPods::Current() const {
  const MutexLock lock(mutex_);
  Pods pods;
  for (const auto& [name, entry] : by_name_) {
    if (entry.waits_for_mig != nullptr) pods.push_back(entry.waits_for_mig);
  }
  return pods;
}

void WaitingPods::PutInto(ByName& by_name, WaitingPod pod, const ByName& known, Pods& arrived) {
  std::string name = FullName(pod.namespace_name, pod.name);
  const auto before = known.find(name);
  const bool is_new = before == known.end() || before->second.uid != pod.pod.id.uid;
  const bool waits_for_mig = pod.waits && pod.pod.shape.mig() != nullptr;
  Entry entry{pod.pod.id.uid, nullptr};
  if (is_new || waits_for_mig) {
    const auto request = std::make_shared<const PodRequest>(std::move(pod.pod));
    if (is_new) arrived.push_back(request);
    if (waits_for_mig) entry.waits_for_mig = request;
  }
  by_name.insert_or_assign(std::move(name), std::move(entry));
}

void WaitingPods::Tell(const Pods& arrived) const {
  if (on_arrival_ && !arrived.empty()) on_arrival_(arrived);
}

void WaitingPods::Put(WaitingPod pod) {
  Pods arrived;
  {
    const MutexLock lock(mutex_);
    PutInto(by_name_, std::move(pod), by_name_, arrived);
  }
  Tell(arrived);
}

void WaitingPods::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  by_name_.erase(FullName(namespace_name, name));
}

void WaitingPods::Reset(std::vector<WaitingPod> pods) {
  Pods arrived;
  {
    const MutexLock lock(mutex_);
    ByName by_name;
    for (WaitingPod& pod : pods) PutInto(by_name, std::move(pod), by_name_, arrived);
    by_name_.swap(by_name);
  }
  Tell(arrived);
}

}  // namespace berth
