// SPDX-License-Identifier: Apache-2.0
//
// DeviceClaims: puts ResourceClaims and ResourceSlices together. A claim names a pool and a device;
// the slices of the pool say which node and which GPU that is. Six things are published:
//
//   to ClusterState, GpusClaimed   what the claims hold on a node, all of it whenever it changes
//   to MigOffers                   the MIG devices that slices offer, and those that claims hold
//   to ClusterState, SliceGpusOffered   the whole GPUs of slices, in the order in which
//                                  kube-scheduler takes them for the DeviceClasses (whole_gpus.h)
//   to DeviceOffers                all devices of the slices, and those that claims hold
//   to OpenClaims   what claims without devices ask for, and where the others have theirs
//   to ClusterState, GpusOffered   the part of the offer that pods can ask for by an extended
//                                  resource, as the DeviceClasses map it. kube-scheduler makes a
//                                  claim for such a pod, which is one claim among the others.
//
// Claims and slices come in any order. Until a slice has come, a pool is taken for the node of its
// name and a device for the GPU in its name, as NVIDIA's driver names them. A device that cannot be
// mapped to a GPU is reported and holds none. A GPU whose MIG devices belong to no known product is
// reported and not offered.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/dns_name.h"
#include "base/mutex.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/node/mig_library.h"
#include "cluster/state/cluster_state.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/dra/slice_json.h"
#include "server/dialects/dra/whole_gpus.h"
#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

// Any thread may call any function.
class DeviceClaims {
 public:
  // The objects of one kind, as a TableSink wants them.
  template <class T>
  class Table {
   public:
    using Object = T;
    explicit Table(DeviceClaims& claims) : all_(claims) {}
    void Put(T object) { all_.Put(std::vector<T>(1, std::move(object)), false); }
    void Remove(std::string_view namespace_name, std::string_view name) {
      const bool has_namespace = !namespace_name.empty();
      all_.Remove(std::type_identity<T>(),
                  has_namespace ? FullName(namespace_name, name) : std::string(name));
    }
    void Reset(std::vector<T> objects) { all_.Put(std::move(objects), true); }

   private:
    DeviceClaims& all_;
  };
  using Slices = Table<ResourceSlice>;
  using Claims = Table<ResourceClaim>;
  using Classes = Table<DeviceClass>;
  using TaintRules = Table<DeviceTaintRule>;

  // About what the devices of slices may take that are no whole GPUs, where they are kept. Of
  // slices beyond it the whole GPUs alone are kept, and nothing is chosen on their nodes.
  static constexpr std::size_t kMostPublished = std::size_t{512} << 20;
  // References: they outlive the object. `devices` and `open` are what it publishes too.
  struct Tables {
    ClusterState& state;
    MigOffers& offers;
    DeviceClasses& classes;
    DeviceOffers& devices;
    OpenClaims& open;
  };
  // chooses: somebody reads `devices`, which is left empty otherwise.
  DeviceClaims(const Tables& tables, bool chooses, const kube::OnUnreadable& report,
               std::size_t most_published = kMostPublished);

  [[nodiscard]] Slices& slices() { return slice_table_; }
  [[nodiscard]] Classes& classes() { return class_table_; }
  [[nodiscard]] Claims& claims() { return claim_table_; }
  [[nodiscard]] TaintRules& taint_rules() { return rule_table_; }
  [[nodiscard]] DeviceOffers& devices() { return devices_; }
  [[nodiscard]] OpenClaims& open() { return open_; }
  // Claims whose device could not be mapped to a GPU.
  [[nodiscard]] std::size_t unknown() const { return unknown_.count(); }
  // Pools with GPUs of an unknown product, whose MIG devices are not offered; nodes whose whole
  // GPUs are not counted, all of them or by one of the resources; slices beyond kMostPublished.
  [[nodiscard]] std::size_t unknown_pools() const {
    return unknown_pools_.count() + uncounted_.count() + beyond_.count();
  }
  // A device that two claims have, or parts of one memory that two MIG devices have, or parts of a
  // device that are more than there is.
  struct Collision {
    std::string node;
    std::string one, device;          // "namespace/name"
    std::string other, other_device;  // of the same GPU
    // The capacity of the device that is less than what claims have of it, the other one with the
    // last part; empty: the two cannot both have theirs.
    std::string beyond = {};
    friend auto operator<=>(const Collision&, const Collision&) = default;
  };
  [[nodiscard]] std::vector<Collision> collisions() const BERTH_EXCLUDES(mutex_);
  // Claims that have what another claim has.
  [[nodiscard]] std::size_t overlapping() const { return overlapping_.count(); }

 private:
  struct Pool {
    std::string node;
    std::map<std::string, ResourceSlice> slices;               // by name
    std::map<std::string, std::vector<ClaimedDevice>> claims;  // by "namespace/name"
    std::optional<OfferedGpus> offers;  // nothing: to be read from the slices again
  };
  using Nodes = std::set<std::string>;

  // replace: there are no others.
  void Put(std::vector<ResourceSlice> slices, bool replace) BERTH_EXCLUDES(mutex_);
  void Put(std::vector<ResourceClaim> claims, bool replace) BERTH_EXCLUDES(mutex_);
  void Put(std::vector<DeviceClass> classes, bool replace) BERTH_EXCLUDES(mutex_);
  void Put(std::vector<DeviceTaintRule> rules, bool replace) BERTH_EXCLUDES(mutex_);
  // name: behind its namespace, where it has one.
  void Remove(std::type_identity<ResourceSlice>, const std::string& name) BERTH_EXCLUDES(mutex_);
  void Remove(std::type_identity<ResourceClaim>, const std::string& name) BERTH_EXCLUDES(mutex_);
  void Remove(std::type_identity<DeviceClass>, const std::string& name);
  void Remove(std::type_identity<DeviceTaintRule>, const std::string& name) BERTH_EXCLUDES(mutex_);
  // Publishes every node again if the profiles that the classes stand for have changed.
  void FollowClasses() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] Nodes AllNodes() const BERTH_REQUIRES(mutex_);
  // Those with devices that the rule may taint.
  void AddTainted(const DeviceTaintRule& rule, Nodes& nodes) const BERTH_REQUIRES(mutex_);

  // What is kept of what the slice publishes.
  [[nodiscard]] std::shared_ptr<const PublishedSlice> Kept(const ResourceSlice& slice)
      BERTH_REQUIRES(mutex_);

  // These add the nodes on which something may have changed.
  void DropSlice(std::string name, Nodes& changed) BERTH_REQUIRES(mutex_);
  void DropClaim(std::string name, Nodes& changed) BERTH_REQUIRES(mutex_);
  // Puts the pool on the node where it is now; removes a pool with nothing in it.
  void RehomePool(const std::string& pool_name, Nodes& changed) BERTH_REQUIRES(mutex_);

  void Publish(const Nodes& nodes) BERTH_REQUIRES(mutex_);
  // The slices of these nodes have changed, or the rules that taint their devices.
  void PublishSlices(const Nodes& nodes) BERTH_REQUIRES(mutex_);
  // The whole GPUs of these nodes, whose slices, classes or taints may have changed.
  void PublishGpus(const Nodes& nodes) BERTH_REQUIRES(mutex_);
  [[nodiscard]] const std::set<std::string>& PoolNamesOn(const std::string& node) const
      BERTH_REQUIRES(mutex_);
  // The devices of the node, with the taints of the rules; gathered once until a slice of the node
  // or a rule changes.
  const DevicePools& PoolsOn(const std::string& node) BERTH_REQUIRES(mutex_);
  [[nodiscard]] DevicePools Gather(const std::string& node) const BERTH_REQUIRES(mutex_);
  // What claims have on the node. `once` gets the same without the second and later parts of a
  // device that several share: these take nothing from each other.
  [[nodiscard]] std::vector<ClaimedGpu> ClaimedOn(const std::string& node,
                                                  std::vector<ClaimedGpu>& once)
      BERTH_REQUIRES(mutex_);
  [[nodiscard]] NodeDevices DevicesOn(const std::string& node) BERTH_REQUIRES(mutex_);
  [[nodiscard]] OfferedGpus OfferedOn(const std::string& node) BERTH_REQUIRES(mutex_);
  // claimed: each device that several share once.
  void NoteCollisions(const std::string& node, std::span<const ClaimedGpu> claimed,
                      std::span<const ClaimedGpu* const> overlapping) BERTH_REQUIRES(mutex_);
  // Of devices that claims share.
  [[nodiscard]] std::vector<Collision> PartsBeyond(const std::string& node) BERTH_REQUIRES(mutex_);

  ClusterState& state_;
  MigOffers& offers_;
  DeviceOffers& devices_;
  OpenClaims& open_;
  const bool chooses_;
  const std::size_t most_published_;
  DeviceClasses& classes_;
  Slices slice_table_{*this};
  Claims claim_table_{*this};
  Classes class_table_{*this};
  TaintRules rule_table_{*this};
  LinkLibrary links_;
  kube::UnreadableObjects unknown_, unknown_pools_, overlapping_, uncounted_,
      beyond_;  // changed under the mutex

  mutable Mutex mutex_;
  std::map<std::string, std::size_t> published_bytes_ BERTH_GUARDED_BY(mutex_);  // by slice
  std::size_t all_published_ BERTH_GUARDED_BY(mutex_) = 0;                       // their sum
  std::vector<MigProfile> by_name_ BERTH_GUARDED_BY(mutex_);  // that extended resources stand for
  // Those that stand for whole GPUs; and the classes that `matches_` was made of.
  std::vector<MatchByName> matches_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, DeviceClass> whole_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, DeviceTaintRule> rules_ BERTH_GUARDED_BY(mutex_);  // by name
  std::map<std::string, Pool> pools_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, DevicePools> gathered_ BERTH_GUARDED_BY(mutex_);  // by node
  std::map<std::string, std::string, std::less<>> pool_of_slice_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> pools_of_claim_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> pools_on_node_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<Collision>> collisions_on_node_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::dialects
