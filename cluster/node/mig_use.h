// SPDX-License-Identifier: Apache-2.0
//
// MigUse: the MIG devices that the pods of a node have; or the claims, if pods get the devices by
// claims (MigSpec::by_claims). A function of the pods, independent of the order in which they came.
// First come the known devices of pods and claims; then, in the order of the UIDs,
// grants whose GPU and start are unknown or no longer exist in the spec, and those of devices that
// were only planned and that another pod was given (PodRecord::given). For those the device is
// assumed that the node's allocator would pick; a pod for which none is left holds nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_spec.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"

namespace berth {

struct GpuPlaces;
struct NodeSpec;
struct PodRequest;

// ClaimedGpu: what ResourceClaims (Kubernetes' Dynamic Resource Allocation) hold on a node.

// PodRequest::made_claim of a claim of that name; never 0.
std::uint64_t NumberOfClaim(std::string_view name);

// One device that a claim holds: a GPU, or a MIG instance of one.
struct ClaimedGpu {
  std::string claim;    // "namespace/name"
  std::string device;   // as the driver calls it
  std::string uuid;     // of the GPU; empty = not known
  int index = -1;       // of the GPU, as the driver counts; -1 = not known
  std::string profile;  // of the MIG instance ("1g.5gb"); empty: the whole GPU, or not known
  int start = -1;       // its first memory slice; -1 = not known
  // The UID of the pod for whose extended resources kube-scheduler made the claim, as the claim
  // says; empty: none.
  std::string pod = {};
  bool shared = false;        // other claims may have parts of the device too
  OtherResources parts = {};  // what it has of a shared one, in thousandths of each capacity
  // Whether it is one of the whole GPUs that the pod asked for by the name of a resource. A claim
  // of another namespace is not, nor one that the pod's status, where it names one, does not name.
  [[nodiscard]] bool IsWholeOf(const PodRequest& asks) const;
  friend bool operator==(const ClaimedGpu&, const ClaimedGpu&) = default;
};

// "20Gi of memory", "20Gi of a GPU's memory": so much of a capacity, in thousandths, whose name may
// have a domain.
std::string TextOfPart(std::int64_t milli, std::string_view capacity, std::string_view whose = "");
// "ml/a", "gpu-0" and, where it is shared, the parts: "ml/a (20Gi of memory)".
std::string WithParts(const std::string& name, const ClaimedGpu& claimed);

// Which GPUs of the node are held, in whole or in part: those with these UUIDs if the node knows
// its UUIDs, else those with these indices. A device that is none of the node's GPUs holds none of
// them: a node may give out some of its GPUs in other ways.
GpuMask HeldByClaims(const NodeSpec& node, std::span<const ClaimedGpu> claimed);

// The same of GPUs with several users, by the UUIDs or the number that the node says of these.
GpuMask PlacesHeldByClaims(const GpuPlaces& places, std::span<const ClaimedGpu> claimed);

// The whole GPUs that the pod asked for by the name of a resource and got by a claim, where
// kube-scheduler gives the node's GPUs so (NodeSpec::by_claims); empty: none is known.
std::vector<DeviceGrant> GrantsByClaim(const NodeSpec& node, std::span<const ClaimedGpu> claimed,
                                       const PodRequest& pod);

// A device: a placement of the product on a GPU, by its position in MigSpec::gpus.
struct MigSlot {
  std::size_t gpu = 0;
  int placement = 0;
  friend auto operator<=>(const MigSlot&, const MigSlot&) = default;
};

// The device of an exact grant, if the spec has it.
std::optional<MigSlot> SlotOf(const MigSpec& spec, const MigGrant& grant);

// The devices of the spec that claims hold, if the claims identify them; of a GPU that one holds as
// a whole all that there are.
std::vector<MigSlot> SlotsOfClaims(const MigSpec& spec, std::span<const ClaimedGpu> claims);

// The plain rows of the product that satisfy the want, the smallest first; or the one row that it
// names. Empty: the product has no such profile.
std::vector<int> RowsFor(const MigProduct& product, const MigWant& want);

// The order in which several devices are picked, lesser first: the largest device, then the one
// with the fewest starts.
using MigRank = std::tuple<int, int, int>;
MigRank RankOf(const MigProduct& product, int row);

// Whether a device of that size satisfies a want without a name.
bool IsEnough(const MigWant& want, int slices, std::int64_t memory_mib);

class MigUse {
 public:
  MigUse() = default;
  // Nothing taken.
  explicit MigUse(const MigSpec& spec)
      : taken_(spec.gpus.size()), shared_taken_(spec.shared.size()) {}
  MigUse(const MigSpec& spec, const PodRecords& pods, std::span<const ClaimedGpu> claims = {});

  // The taken placements, by GPU. Pods bound past Berth may make them incompatible.
  [[nodiscard]] std::span<const MigSet> taken() const { return taken_; }
  // How many users there are, by position in MigSpec::shared.
  [[nodiscard]] std::span<const int> shared_taken() const { return shared_taken_; }

  // The device that the node's allocator picks next for that row; nullopt if none is free.
  // Requires: a row of the spec's product.
  [[nodiscard]] std::optional<MigSlot> NextSlot(const MigSpec& spec, int row) const;
  // The position in MigSpec::shared of a stock of that name that has a place for another user.
  [[nodiscard]] std::optional<std::size_t> NextShared(const MigSpec& spec,
                                                      const MigWant& want) const;

  void Take(const MigSlot& slot) { taken_[slot.gpu] |= MigSet{1} << slot.placement; }
  void Release(const MigSlot& slot) { taken_[slot.gpu] &= ~(MigSet{1} << slot.placement); }
  void TakeShared(std::size_t stock) { ++shared_taken_[stock]; }

  // Takes the granted devices. Error: kConflict naming the device; part of the grants is taken
  // then.
  Status TakeAll(const MigSpec& spec, std::span<const MigGrant> grants);

  friend bool operator==(const MigUse&, const MigUse&) = default;

 private:
  std::vector<MigSet> taken_;
  std::vector<int> shared_taken_;
};

// The devices that each of the pods has, known or assumed: one list per pod.
std::vector<std::vector<MigSlot>> SlotsByPod(const MigSpec& spec, const PodRecords& pods,
                                             std::span<const ClaimedGpu> claims = {});

// "1g.5gb at 4 of GPU 2", "1g.5gb"; for errors.
std::string NameOf(const MigGrant& grant);

}  // namespace berth
