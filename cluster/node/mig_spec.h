// SPDX-License-Identifier: Apache-2.0
//
// MigSpec: the MIG devices of a node - which exist, which can be created, and how well that is
// known.
//
// Partitioned GPUs are not among NodeSpec::gpus: those are given whole or shared, these in MIG
// devices, and no GPU is both. Each has a set of placements of its product
// (topology/mig/mig_product.h):
//
//   static    the existing instances; a pod gets one of them
//   dynamic   created when a pod comes: any placement that is compatible with the taken ones
//
// Three exceptions: devices with several users (time slicing) are only counted; with the strategy
// `single` the devices of one profile are the node's `gpus`; a node in trouble takes no pod with
// GPUs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "topology/mig/mig_product.h"

namespace berth {

// How well the instances, and the pods' devices, are known.
enum class MigKnowledge : std::uint8_t {
  kCounts,  // how many per node: on which GPU they are, and where, is assumed
  kPerGpu,  // how many per GPU: where they begin is assumed
  kExact,
};

// Who picks the device for a pod once its node is chosen. Berth chooses the node by what it expects
// the others to pick.
enum class MigAllocator : std::uint8_t {
  kBerth,      // Berth: GPU and start, written with the binding
  kFirstFit,   // the first GPU that has room, the lowest start: assumed of the kubelet
  kDriver,     // the first GPU that has room, NVIDIA's driver's start (topology/mig/mig_product.h)
  kHighOrLow,  // the first GPU that has room, the highest or lowest start (mig_product.h)
  // kube-scheduler, which makes a ResourceClaim for the pod's extended resources (KEP-5004): the
  // first fit, in the order of `gpus`. It is the claim that holds the devices, and no pod.
  kKubeScheduler,
};

enum class MigTrouble : std::uint8_t {
  kNone,
  kChanging,  // nvidia.com/mig.config.state is pending or rebooting
  kFailed,    // ... is failed
  kInvalid,   // strategy single, and the devices are not alike
  kStale,     // labels and allocatable devices contradict each other
};
std::string_view MigTroubleName(MigTrouble trouble);  // "", "changing", "failed", ...

// The name that the device plugin has for an instance: "MIG-...".
struct MigName {
  int placement = 0;
  std::string id;
  friend bool operator==(const MigName&, const MigName&) = default;
};

struct MigGpu {
  int index = 0;                    // on the node
  std::string uuid;                 // empty = not known
  MigSet instances = 0;             // static: those that are there
  MigSet offered = ~MigSet{0};      // those that may be given or made; none that is not healthy
  std::vector<MigName> names = {};  // static: of those instances whose names are known
  friend bool operator==(const MigGpu&, const MigGpu&) = default;
};

// Devices with several users, as pods ask for them.
struct MigStock {
  MigResource resource;  // .shared or, where sharing does not rename, the plain name
  int count = 0;         // users in all
  friend bool operator==(const MigStock&, const MigStock&) = default;
};

struct MigSpec {
  // The product of all the GPUs; nullptr only if there are none. Equal products are one object
  // (cluster/node/mig_library.h).
  std::shared_ptr<const MigProduct> product;
  std::vector<MigGpu> gpus;  // by ascending index, but for kKubeScheduler: in its order
  bool dynamic = false;
  MigKnowledge knowledge = MigKnowledge::kCounts;
  MigAllocator allocator = MigAllocator::kFirstFit;
  // Another scheduler gives them out: Berth counts what its pods have and gives none.
  bool foreign = false;
  bool fixed = false;  // static, and cannot be repartitioned
  // The agent that makes the devices which Berth picks. Empty: one that reads the pod's annotation
  // berth.dev/devices. Otherwise the name of the dialect that writes what the agent reads; such an
  // agent knows GPUs by their UUIDs.
  std::string agent;
  std::vector<MigStock> shared;
  std::optional<MigProfile> single;  // what each of NodeSpec::gpus is
  std::int64_t single_memory_mib = 0;
  MigTrouble trouble = MigTrouble::kNone;
  friend bool operator==(const MigSpec&, const MigSpec&) = default;

  // Pods get devices by the name of an extended resource, and a claim holds them.
  [[nodiscard]] bool by_claims() const { return allocator == MigAllocator::kKubeScheduler; }
  // Pods may name profiles as extended resources. Agents of other dialects serve none of those.
  [[nodiscard]] bool takes_names() const { return agent.empty(); }
  // The position in `gpus` of the GPU with that index.
  [[nodiscard]] std::optional<std::size_t> PositionOf(int index) const;
  // The instance of that name; nothing: the node has none, or does not say its name.
  [[nodiscard]] std::optional<MigGrant> FindNamed(std::string_view id) const;
  // The placements for which there is room on the GPU at that position, beside `taken`.
  [[nodiscard]] MigSet Room(std::size_t gpu, MigSet taken) const {
    return dynamic ? product->Addable(taken) : gpus[gpu].instances & ~taken;
  }
  // Those of them that may be given.
  [[nodiscard]] MigSet Free(std::size_t gpu, MigSet taken) const {
    return Room(gpu, taken) & gpus[gpu].offered;
  }
};

// Error: kInvalidArgument naming the field: GPUs without a product, out of order or duplicate, or
// with incompatible instances; negative counts.
Status Validate(const MigSpec& spec);

// A MigSpec shared by all copies of a node, or none. Compares by content.
class NodeMig {
 public:
  NodeMig() = default;
  explicit NodeMig(MigSpec spec) : spec_(std::make_shared<const MigSpec>(std::move(spec))) {}

  [[nodiscard]] bool known() const { return spec_ != nullptr; }
  // Requires: known().
  const MigSpec& operator*() const { return *spec_; }
  const MigSpec* operator->() const { return spec_.get(); }

  friend bool operator==(const NodeMig& a, const NodeMig& b) {
    return a.spec_ == b.spec_ || (a.known() && b.known() && *a == *b);
  }

 private:
  std::shared_ptr<const MigSpec> spec_;
};

}  // namespace berth
