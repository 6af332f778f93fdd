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
//   hami.io/vgpu-mig-allocations             of MIG devices (hami_dialect.h); containerIndex
//                                            counts the segments, deviceIndex the devices of one
//   hami.io/bind-phase, hami.io/bind-time    "allocating", until the plugin says success or failed
//
// The plugin looks for the pod by its lock on the node, takes the first segment that is not empty,
// and makes exactly that profile at that start. (HAMi at 31a8ae5,
// pkg/device/nvidia/mig_allocations.go; at 0269521, GetNextDeviceRequest and
// GetContainerDeviceStrArray of pkg/device-plugin/nvidiadevice/nvinternal/plugin/util.go.)
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// HamiNodeLock: HAMi's lock on a node. A scheduler that binds a pod there
// takes it, and HAMi's agent removes it when it has served the pod.
//
// A lock of the same pod is taken again. A stale lock is taken over: one that is older than
// kExpires, or for a pod that is gone, over, or on another node. So is one that Berth has left
// behind, killed between lock and Binding: it is older than kAbandoned, its pod is bound nowhere,
// HAMi's scheduler has not placed it (it writes hami.io/vgpu-node on a pod before it takes the
// lock), and this process does not bind it. Any other lock is waited for.

// Any thread may call any function.
class HamiNodeLock {
 public:
  static constexpr Duration kExpires = std::chrono::minutes(5);  // HAMi's --node-lock-timeout
  // By then a Binding that was sent before the process died has been carried out, or never will be.
  static constexpr Duration kAbandoned = std::chrono::seconds(10);
  // More fail at once: threads that wait here cannot bind pods of other nodes.
  static constexpr int kMostWaiting = 8;

  // A node, and its lock as it was written; empty = it was not.
  struct Held {
    std::string node;
    std::string text = {};
  };

  // Whether this process binds the pod of that "namespace/name", or does not know whether it has.
  using IsBinding = std::function<bool(const std::string& full_name)>;

  // rules outlive the object.
  HamiNodeLock(kube::WriteContext write, const wire::PodRules& rules, IsBinding is_binding)
      : write_(std::move(write)), rules_(rules), is_binding_(std::move(is_binding)) {}

  // Takes the lock of held.node. Error: kDeadline when until the deadline it is held for another
  // pod, or the API server does not answer; kNotFound when the node is gone; kInvalidArgument when
  // Berth may not change the node, or its lock cannot be read. After an error, a held.text that is
  // not empty means that the lock may be taken: it was written, and no answer came.
  Status Take(const PodId& pod, Instant deadline, Held& held);

  // Success: the lock is not held.text any more. Error: kUnavailable.
  Status Release(const Held& held);

 private:
  // held_by_other: set when the attempt failed because the lock is held for another pod.
  kube::Attempt TryTake(const PodId& pod, Held& held, Duration timeout, bool& held_by_other);
  [[nodiscard]] kube::Backoff Waits() const;
  // Whether the lock may be taken; kInvalidArgument where it cannot be read.
  Result<bool> IsOpen(const std::string& text, const std::string& node, const PodId& pod,
                      Duration timeout);
  Result<kube::ApiResponse> Patch(const std::string& node, const std::string& version,
                                  std::string_view lock, Duration timeout);

  const kube::WriteContext write_;
  const wire::PodRules& rules_;
  const IsBinding is_binding_;
  std::atomic<int> waiting_{0};
};

// HAMi's lock on a node: the annotation hami.io/mutex.lock of the Node names the one pod that its
// device plugin serves next.
//
//   2026-08-21T10:00:00Z,default,train-0      when it was taken, for which pod
//   2026-08-21T10:00:00Z                      of old releases: nobody is named
//
// It is set and removed by a merge patch that carries the version of the node as it was read, so
// that of two who take it one gets 409. (HAMi at 02fba77, pkg/util/nodelock/nodelock.go.)
inline constexpr std::string_view kHamiLockAnnotation = "hami.io/mutex.lock";

struct HamiLock {
  WallTime since;                   // whole seconds
  std::string namespace_name, pod;  // both empty: nobody is named
};

// Error: kInvalidArgument with what was wanted and found.
Result<HamiLock> ParseHamiLock(std::string_view text);
std::string EncodeHamiLock(WallTime now, const PodId& pod);

// What a Node says of it.
struct LockedNode {
  std::string resource_version;
  std::string lock;  // the text; empty = not locked
};
// Error: kInvalidArgument for what is not JSON or has no version.
Result<LockedNode> DecodeLockedNode(const PaddedText& text);

// The application/merge-patch+json of the Node; an empty lock removes it.
std::string EncodeLockPatch(std::string_view resource_version, std::string_view lock);

inline constexpr std::string_view kHamiDevicesAnnotation = "hami.io/vgpu-devices-allocated";

// Whether that placement has to be told in HAMi's dialect.
bool SpeaksHami(const Placement& placement, const NodeSpec& node);

// Annotations by key. Requires: SpeaksHami, and grants of devices that the node has.
wire::Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, WallTime now);

// HamiBinds: a pod that gets devices of HAMi's agent is bound under that agent's lock on the node,
// and no other pod is. After a bind that failed the lock is released as soon as it is known that
// the pod is not on the node: the agent needs the lock for a pod that is.

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
