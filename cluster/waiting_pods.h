// SPDX-License-Identifier: Apache-2.0
//
// WaitingPods: the pods without a node, as the API server has them: which ones have arrived, and
// which ask for MIG devices and found no node. The extender does not learn of all of them: if
// kube-scheduler's own filters leave no node, it is not called. And it may be asked about pods that
// do not exist, by programs that simulate scheduling.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/pod_request.h"

namespace berth {

struct WaitingPod {
  std::string namespace_name;
  std::string name;
  PodRequest pod;
  bool waits = false;  // it has no node, and kube-scheduler found none that fits
};

// Any thread may call any function.
class WaitingPods {
 public:
  using Object = WaitingPod;
  using Pods = std::vector<std::shared_ptr<const PodRequest>>;

  // Called once for every pod seen for the first time, on the thread that reports it; the pods of
  // one list together.
  using OnArrival = std::function<void(const Pods& arrived)>;

  explicit WaitingPods(OnArrival on_arrival = {}) : on_arrival_(std::move(on_arrival)) {}

  // The pods that wait for MIG devices, sorted by name.
  [[nodiscard]] Pods Current() const BERTH_EXCLUDES(mutex_);

  // Adds the pod, or replaces it.
  void Put(WaitingPod pod) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list.
  void Reset(std::vector<WaitingPod> pods) BERTH_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string uid;
    std::shared_ptr<const PodRequest> waits_for_mig;  // nullptr: it does not
  };
  using ByName = std::map<std::string, Entry>;  // "namespace/name"

  // Adds to `arrived` a pod that `known` does not have.
  static void PutInto(ByName& by_name, WaitingPod pod, const ByName& known, Pods& arrived);
  void Tell(const Pods& arrived) const;

  const OnArrival on_arrival_;
  mutable Mutex mutex_;
  ByName by_name_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
