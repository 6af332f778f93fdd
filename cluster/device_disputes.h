// SPDX-License-Identifier: Apache-2.0
//
// DeviceDisputes: whether the devices that a pod's annotation names are believed. Whoever may write
// a pod may write its annotations, so an annotation is evidence and not the truth:
//
// - A pod keeps the devices that it is known to have, because it was bound here or because its
//   annotation named them when the pod was first seen. An annotation that names others is reported.
//   It may only add detail to what was known in part (which MIG device of a profile).
// - Devices that an annotation names first are believed if the node, where it is known, has them
//   and no other pod is known to hold them. Otherwise the pod counts as one with unknown devices
//   (assumed_grants.h) until there is room for those that it names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster_event.h"
#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_record.h"

namespace berth {

// A pod whose annotation is not believed.
struct DeviceDispute {
  PodId pod;
  std::string problem;  // what the annotation says, and why that is not believed
  friend bool operator==(const DeviceDispute&, const DeviceDispute&) = default;
};

// The disputes of a cluster, by UID. ClusterState guards it and gives it, with each question, what
// is known of the pod and of its node: `held` is the pod's record (nullptr: none), `pods` are those
// on the node, `node` is its spec (nullptr: not known).
class DeviceDisputes {
 public:
  // What to book for a bound pod whose devices an annotation names. Begins or ends its dispute.
  Placement Believe(const PodBound& bound, const PodRecord* held, const PodRecords& pods,
                    const NodeSpec* node);

  // What to book for a pod whose annotation was believed before its node was known; nullopt: no
  // change. Begins its dispute if the node does not have the devices.
  std::optional<Placement> DisputeUnknown(const PodRecord& held, const NodeSpec& node);

  // The pods that may still get the devices that they name on that node, by UID.
  [[nodiscard]] std::vector<std::string> OpenOn(std::string_view node) const;
  // What one of these says.
  [[nodiscard]] const Placement& SaidOf(std::string_view uid) const;
  // What to book for one of these now; nullopt: no change. Ends its dispute if there is room.
  std::optional<Placement> Reconsider(std::string_view uid, const PodRecord& held,
                                      const PodRecords& pods, const NodeSpec* node);

  void Forget(std::string_view uid);
  [[nodiscard]] std::vector<DeviceDispute> List() const;

 private:
  struct Entry {
    DeviceDispute dispute;
    Placement said;
    bool open = false;  // nothing better is known: believed as soon as there is room
  };
  std::map<std::string, Entry, std::less<>> by_uid_;
};

// Whether `said` is `known` with more detail.
bool Specifies(const Placement& known, const Placement& said);

// "GPU 0, GPU 3 (500 milli)".
std::string DevicesText(const Placement& placement);

}  // namespace berth
