// SPDX-License-Identifier: Apache-2.0
//
// Binding in HAMi's dialect: what a pod has to carry so that HAMi's device plugin gives it the GPUs
// and parts of them, and makes the MIG devices, that it was given.
//
//   hami.io/vgpu-node, hami.io/vgpu-time     node and unix seconds of the decision
//   hami.io/vgpu-devices-to-allocate         "GPU-a,NVIDIA,9984,14:;" - a segment per container, in
//   hami.io/vgpu-devices-allocated           the order of the plugin (init containers first), each
//                                            ended by ";" (vgpu/vgpu_devices.h). The plugin empties
//                                            the segments of the first as it serves them, the
//                                            second stays.
//   hami.io/vgpu-mig-allocations             of MIG devices (hami_mig.h); containerIndex counts the
//                                            segments, deviceIndex the devices of one
//   hami.io/bind-phase, hami.io/bind-time    "allocating", until the plugin says success or failed
//
// The plugin looks for the pod by its lock on the node (hami_node_lock.h), takes the first
// segment that is not empty, and makes exactly that profile at that start. (HAMi at 31a8ae5,
// pkg/device/nvidia/mig_allocations.go; at 0269521, GetNextDeviceRequest and
// GetContainerDeviceStrArray of pkg/device-plugin/nvidiadevice/nvinternal/plugin/util.go.)
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/dialects/hami/hami_node_lock.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

inline constexpr std::string_view kHamiDevicesAnnotation = "hami.io/vgpu-devices-allocated";

// Whether that placement has to be told in HAMi's dialect.
bool SpeaksHami(const Placement& placement, const NodeSpec& node);

// Annotations by key. Requires: SpeaksHami, and grants of devices that the node has.
wire::Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, WallTime now);

// HamiBinds: a pod that gets devices of HAMi's agent is bound under that agent's lock on the node
// (hami_node_lock.h), and no other pod is. After a bind that failed the lock is released as soon as
// it is known that the pod is not on the node: the agent needs the lock for a pod that is.

// Any thread may call any function.
class HamiBinds final : public kube::ClusterExtension {
 public:
  // rules outlive the object.
  HamiBinds(kube::WriteContext write, const wire::PodRules& rules)
      : write_(std::move(write)),
        rules_(rules),
        lock_(write_, rules, [this](const auto& pod) { return IsBinding(pod); }) {}

  Status AroundBind(const BindOrder& order, const std::function<Status()>& bind) override
      BERTH_EXCLUDES(mutex_);
  // Releases the locks that could not be released before; gives up for now when the API server does
  // not answer.
  void Upkeep() override BERTH_EXCLUDES(mutex_);

 private:
  // The lock of a bind that failed: it is the agent's, if the pod is on the node all the same.
  struct Locked {
    PodId pod;
    HamiNodeLock::Held held;
  };
  [[nodiscard]] bool IsBinding(const std::string& full_name) const BERTH_EXCLUDES(mutex_);
  Status BindUnderLock(const BindOrder& order, const std::function<Status()>& bind)
      BERTH_EXCLUDES(mutex_);
  // False: that is not known; Upkeep tries again.
  bool LetGo(Locked locked) BERTH_EXCLUDES(mutex_);

  const kube::WriteContext write_;
  const wire::PodRules& rules_;
  HamiNodeLock lock_;
  mutable Mutex mutex_;
  std::multiset<std::string> binding_ BERTH_GUARDED_BY(mutex_);  // pods, by full name
  std::vector<Locked> left_ BERTH_GUARDED_BY(mutex_);  // of binds whose outcome is unknown
};

}  // namespace berth::dialects
