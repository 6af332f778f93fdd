// SPDX-License-Identifier: Apache-2.0
//
// WaitingPods: the pods that ask for MIG devices and for which kube-scheduler has found no node, as
// the API server has them. The extender does not hear of all of these: where kube-scheduler's own
// filters leave no node, it is not asked.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/pod_request.h"

namespace berth {

struct WaitingPod {
  std::string namespace_name;
  std::string name;
  PodRequest pod;
  bool waits = false;  // it has no node, and kube-scheduler has said that none will do
};

// Any thread may call any function.
class WaitingPods {
 public:
  using Object = WaitingPod;
  using Pods = std::vector<std::shared_ptr<const PodRequest>>;

  // In the order of their names.
  [[nodiscard]] Pods Current() const BERTH_EXCLUDES(mutex_);

  // Adds the pod, or replaces it. One that does not wait, or not for MIG devices, is left out.
  void Put(WaitingPod pod) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  // What a list of all of them says.
  void Reset(std::vector<WaitingPod> pods) BERTH_EXCLUDES(mutex_);

 private:
  using ByName = std::map<std::string, std::shared_ptr<const PodRequest>>;  // "namespace/name"

  static void PutInto(ByName& by_name, WaitingPod pod);

  mutable Mutex mutex_;
  ByName by_name_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
