// SPDX-License-Identifier: Apache-2.0
//
// DeviceDisputes: whether the devices that a pod's annotation names are believed. Anybody who may
// write a pod may write its annotations, so an annotation is evidence and not the truth:
//
// - A pod keeps the devices that it is known to have, because it was bound here or because its
//   annotation named them when the pod was first seen. An annotation that names others is reported.
//   It may only add detail to what was known in part (which MIG device of a profile).
// - Devices that an annotation names first are believed if the node, where it is known, has them
//   and no other pod is known to hold them. Otherwise the pod counts as one with unknown devices
//   (given_grants.h) until there is room for those that it names.
// - A pod that Berth has bound, and that does not name its devices any more, keeps those that it is
//   known to have, or counts as one with unknown devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/cluster_event.h"
#include "cluster/state/held_devices.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"

namespace berth {

// A pod whose annotation is not believed.
struct DeviceDispute {
  PodId pod;
  std::string problem;  // what the annotation says, and why that is not believed
  friend bool operator==(const DeviceDispute&, const DeviceDispute&) = default;
};

// What became of the dispute about one pod: as it is now, or nothing, because it is over.
struct DisputeChange {
  std::string uid;
  std::optional<DeviceDispute> dispute;
};

// The disputes of a cluster, by UID. ClusterState guards it and gives it, with each question, what
// is known of the pod and of its node: `held` is the pod's record (nullptr: none), `there` is what
// the pods on the node hold, `node` is its spec (nullptr: not known). What a function costs depends
// on the devices of the one pod, however many pods name the same ones.
//
// A dispute on a node that is not known keeps its pod from being believed. It is reported and
// counted once the node is known: anybody may name nodes that do not exist. One of a pod that lacks
// its devices counts while the node gives devices by name; where it gives places there are none.
class DeviceDisputes {
 public:
  using SpecOf = std::function<const NodeSpec*(std::string_view node)>;  // nullptr: not known

  // What to book for a bound pod whose devices an annotation names. Begins or ends its dispute.
  Placement Believe(const PodBound& bound, const PodRecord* held, const HeldOnNode& there,
                    const NodeSpec* node);

  // What to book for a pod whose annotation was believed before its node was known; nullopt: no
  // change. Begins its dispute if the node does not have the devices.
  std::optional<Placement> DisputeUnknown(const PodRecord& held, const NodeSpec& node);

  // The pods that may still get the devices that they name on that node, by UID.
  [[nodiscard]] std::vector<std::string> OpenOn(std::string_view node) const;
  // The next of them, by UID, that names a device of the placement, which somebody has left.
  [[nodiscard]] std::optional<std::string> NextBeside(const Placement& freed,
                                                      const std::string& after) const;
  // Whether each GPU that somebody has left is held whole again, by a pod that is believed: then
  // nothing has changed for the others.
  [[nodiscard]] bool IsHeldAgain(const Placement& freed, const HeldOnNode& there) const;
  // What one of these says.
  [[nodiscard]] const Placement& SaidOf(std::string_view uid) const;
  // What to book for one of these now; nullopt: no change. Ends its dispute if there is room.
  std::optional<Placement> Reconsider(std::string_view uid, const PodRecord& held,
                                      const HeldOnNode& there, const NodeSpec* node);

  void Forget(std::string_view uid);
  // The node has changed, or is not known any more.
  void NodeChanges(std::string_view node);
  [[nodiscard]] std::vector<DeviceDispute> List(const SpecOf& spec_of) const;
  [[nodiscard]] std::size_t Count(const SpecOf& spec_of) const;
  // Those that have begun, changed or ended since the last call; the first call: all that there
  // are. From then on changes are kept until the next call.
  [[nodiscard]] std::vector<DisputeChange> TakeChanges(const SpecOf& spec_of);

  // How often an annotation was compared with the books.
  [[nodiscard]] std::uint64_t checks() const { return checks_; }

 private:
  enum class Lack { kNothing, kGpus, kMigDevices };
  struct Entry {
    DeviceDispute dispute;
    Placement said;
    bool open = false;            // nothing better is known: believed as soon as there is room
    std::vector<int> named = {};  // while it is open: its keys in open_
    Lack lacks = Lack::kNothing;
  };

  // Why the pod cannot have the devices; "" = it can.
  std::string Check(const Placement& said, const PodRequest& pod, const PodRecord* own,
                    const HeldOnNode& there, const NodeSpec* node);
  // Puts it in place of the pod's dispute before. named: its devices by the node's indices.
  void Begin(Entry entry, const Placement& named);
  void Unlist(const Entry& entry);
  // Begins the dispute of a pod that PodBound::lacks_devices. held: what it has, if it has devices.
  Placement DisputeLack(const PodBound& bound, const PodRecord* held);
  [[nodiscard]] static bool Counts(const Entry& entry, const SpecOf& spec_of);

  std::map<std::string, Entry, std::less<>> by_uid_;
  // UIDs of open ones: by node, by what they name (a GPU's index, or a constant of the source).
  std::map<std::string, std::map<int, std::set<std::string>>, std::less<>> open_;
  bool follows_ = false;  // somebody takes the changes
  std::set<std::string> changed_;
  std::uint64_t checks_ = 0;
};

// Whether `said` is `known` with more detail.
bool Specifies(const Placement& known, const Placement& said);

// "GPU 0, GPU 3 (500 milli)"; of more than eight devices the first: disputes are kept as text.
std::string DevicesText(const Placement& placement);

}  // namespace berth
