// SPDX-License-Identifier: Apache-2.0
//
// Node: one machine - what it has (NodeSpec, shared and immutable) and what is free on it.
//
// Free amounts are the amounts of the spec minus those that the pods on the node take, so the order
// in which pods came and went leaves no trace. They can be negative: pods may be bound past Berth.
// If the GPUs of such a pod are unknown, some are assumed (given_grants.h): after the known
// grants, in the order of the UIDs, until each GPU is overfull: nothing fits there then, and any
// tenant may name the node in thousands of pods. MIG devices are counted apart (mig_use.h). A GPU
// that a ResourceClaim holds in part has nothing free. Where kube-scheduler gives GPUs by claims,
// the claim of a pod takes the place of its grants, whichever they are, and other pods, whose
// claims are not known yet, are assumed to have the first GPUs that are left. A grant of a GPU that
// the spec does not have (any more) is assumed to be one of those that it has.
//
// What a pod was given (PodRecord::given) outranks what other pods were only planned with: a
// planned whole GPU that another pod was given is assumed to be one of those that are left. If the
// agents of the node say the same GPU of two pods, it counts for the first by UID. Places on GPUs
// are counted in all; how many of them are on which GPU is known of those pods whose GPUs are.
//
// Some GPUs are closed: nothing more of them is given, and what is held stays held. These are the
// unhealthy ones. If the node has `missing` GPUs and their identity is unknown, the freest GPUs are
// closed too: as many as have, between them, the compute and memory of the missing ones free, or
// all. So pods never get more of the node than its allocatable GPUs have, whichever of them is out
// of order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/mig_use.h"
#include "cluster/node/node_likeness.h"
#include "cluster/node/topology_manager.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"
#include "topology/links/gpu_links.h"

namespace berth {

// GpuPlaces: the GPUs of a node that have several users each (time slicing, MPS, an agent of
// another scheduler). A pod gets a place on one of them. The kubelet picks it; Berth where the
// node's agent carries that out (NodeSpec::carries_out), on the GPU with the fewest users. Which
// one it is, is known where the GPUs have names, by what the pod was given or by that plan
// (Placement::places_on).

// What keeps the users of one GPU apart.
enum class GpuSharing : std::uint8_t {
  kUnknown,      // nobody says
  kTimeSlicing,  // they take turns; each of them can take all of the memory
  kMps,          // they run side by side; each has its part of the memory and no more
};

struct GpuPlaces {
  int count = 0;         // users in all
  bool foreign = false;  // another scheduler gives them out, or `gpus`: Berth counts and gives none
  // On so many GPUs, or MIG devices, as many users on each; 0 = not known. As many as there are
  // places: more devices than a node can have GPUs, each for one user.
  int gpus = 0;
  // What a place has of its GPU's memory; 0 = not known.
  std::int64_t memory_mib = 0;
  GpuSharing sharing = GpuSharing::kUnknown;
  std::vector<std::string> uuids = {};  // of the `gpus`, by index; empty: not known
  // Those of them that are out of order, ascending: nothing more of them is given.
  std::vector<int> unwell = {};
  bool several = false;  // a container may ask for several, which may be of one GPU
  // Users on each of the GPUs; 0 = not known.
  [[nodiscard]] int each() const { return gpus > 0 ? (count + gpus - 1) / gpus : 0; }
  friend bool operator==(const GpuPlaces&, const GpuPlaces&) = default;
};

inline constexpr std::int64_t kMostCpuMilli = 1'000'000'000'000;
inline constexpr std::int64_t kMostMemoryBytes = std::int64_t{1} << 60;

inline constexpr int kMostCores = 10'000;        // GpuSpec::cores
inline constexpr int kMostMemoryUnit = 1 << 16;  // GpuSpec::unit_mib

struct GpuSpec {
  std::string uuid;             // empty = not known
  std::int64_t memory_mib = 0;  // 0 = not known: memory of this GPU is then not tracked
  bool healthy = true;
  int most_users = 0;  // pods that its agent serves on it at a time; 0 = any number
  // Percent of compute that its agent gives of it in all, to pods that ask in percent.
  int cores = 100;
  // MiB of each unit in which its agent, and pods that ask it for memory, count memory.
  int unit_mib = 1;
  int capability = 0;    // of compute (CapabilityNumber); 0 = not known
  bool foreign = false;  // another scheduler gives it: not healthy here, and not out of order
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

// GPUs of a node that it does not offer itself (topology_manager.h): its ResourceSlices may.
struct GpusBeside {
  std::vector<std::string> uuids = {};
  GpuLinks links = {};  // of these, by index
  int in_slices = 0;    // whole GPUs that its slices offer to claims alone, and nobody by name
  // Of these, those of other drivers than NVIDIA's: "AMD_Instinct_MI300X_OAM of gpu.amd.com".
  std::map<std::string, int> of_drivers = {};
  friend bool operator==(const GpusBeside&, const GpusBeside&) = default;
};

struct NodeSpec {
  std::string name;       // DNS-1123
  std::string gpu_model;  // as the node publishes it; empty without GPUs
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  bool ready = true;  // able to run new pods
  std::vector<GpuSpec> gpus;
  std::vector<std::string> gpu_models = {};  // of `gpus`, where these are of several; else empty
  // Disk for the ephemeral storage of pods. Empty: the node does not say, it is not tracked, and no
  // pod is refused for it here (kube-scheduler takes it for 0).
  std::optional<std::int64_t> ephemeral_bytes = {};
  Labels labels = {};
  std::vector<Taint> taints = {};       // that exclude pods
  std::vector<Taint> soft_taints = {};  // PreferNoSchedule
  GpuLinks links = {};                  // of `gpus`, by index; unknown: all GPUs count as alike
  NodeMig mig = {};                     // partitioned GPUs, beside `gpus`; unknown: none
  GpuPlaces places = {};                // instead of `gpus`
  // The resource by which pods ask for `gpus` or places ("nvidia.com/gpu"); empty: any.
  std::string gpu_resource = {};
  // The agent that hands out `gpus`, in parts too, to pods that ask in its words; empty: one that
  // knows no parts.
  std::string share_agent = {};
  // The agents that the node shows, whether they hand out its GPUs or not. What their records on
  // pods say of devices counts there, and on no other node (given_grants.h).
  std::vector<std::string> agents = {};
  // The agent that gives only parts of `gpus`, to pods that ask in its words, while the device
  // plugin gives whole ones; empty: none.
  std::string part_agent = {};
  // What its kubelet refused last: pods that ask for it get no place there for a while
  // (GpuPodsRefused).
  RefusedAsks refused_asks = nullptr;
  // When its Ready condition changed last, in seconds since 1970 by the clock of its writer;
  // 0: it does not say. A kubelet that starts anew changes it.
  std::int64_t ready_since = 0;
  // The condition of the node by which somebody says that its GPUs are out of order ("XIDErrors");
  // empty: nobody does. It gets no pods with GPUs.
  std::string gpu_condition = {};
  // The one that says which GPUs they are: these are not healthy, or among the missing. The node
  // gives the others.
  std::string named_gpus_condition = {};
  // Which two numbers of its GPUs contradict each other, and how to settle it (inventory.h); empty:
  // none do. Its GPUs are `places` then.
  std::string gpu_contradiction = {};
  // What of it could not be read or has no effect, each with its place; empty: nothing.
  std::string passed_over = {};
  // What its agent for shares would need so that it could give some, and the cure; empty: nothing.
  std::string agent_lacks = {};
  // What sort of node it is, by name: sorted, unique (server/wire/node/node_traits.h).
  std::vector<std::string> traits = {};
  double gpu_price = 0;  // of one of its GPUs in an hour, in any currency; 0 = not known
  // `gpus` are those of ResourceSlices: kube-scheduler gives them to pods by claims, first fit, to
  // those that ask for one of these resources. Empty: a device plugin or an agent gives them.
  std::vector<GpusByName> by_claims = {};
  GpusBeside beside = {};      // what the node says of GPUs that it does not offer itself
  OtherResources others = {};  // at most kMostOtherResources
  // GPUs of further resources (partitions of two kinds, two kernel drivers). Pods get so many
  // of them, and Berth chooses none.
  OtherResources other_gpus = {};
  // The members above are aligned to 8 bytes, those below are not: nodes are many.
  // So many of `gpus`, or of the places, are out of order; which ones is unknown.
  int missing = 0;
  // How many pods its kubelet takes; -1: it does not say, and then `others` are not known either.
  int most_pods = -1;
  // `gpus` are fixed parts of GPUs that the vendor's agent counts as GPUs (AMD's partitions).
  bool gpus_are_parts = false;
  // Its share_agent serves all pods that are bound there: those that ask for shares in Berth's
  // words, too.
  bool agent_serves_all = false;
  bool part_agent_ready = false;  // the part_agent is there
  // What keeps the users of one GPU apart there: kNone, or kMemory.
  Isolation share_isolation = Isolation::kNone;
  // No shares are given of `gpus` while the UUID of one is unknown: nobody could carry them out.
  bool shares_need_uuids = false;
  // Its kubelet refused the pods with GPUs that were bound there last: it gets none for a while
  // (GpuPodsRefused).
  bool refuses_gpu_pods = false;
  // Nobody on it offers GPUs. By its labels, or by a resource with 0 of them, it has some.
  bool gpus_to_come = false;
  // An agent gives containers those of `gpus`, or places on those GPUs, that Berth chose. Without
  // one, and without a share_agent, the device plugin chooses, and what Berth chose is a plan.
  bool carries_out = false;
  // By which its kubelet limits the GPUs of a container or a pod.
  TopologyManager topology_manager = {};
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;

  // The GPU of that index; nullptr: the node has none of it. Grants outlive what the node said when
  // they were given, so the index of a grant is looked up here and used nowhere else (test/arch).
  [[nodiscard]] const GpuSpec* FindGpu(int index) const {
    const bool has = index >= 0 && static_cast<std::size_t>(index) < gpus.size();
    return has ? &gpus[static_cast<std::size_t>(index)] : nullptr;
  }
  [[nodiscard]] bool cordoned() const {
    return std::ranges::find(taints, kCordonTaint, &Taint::key) != taints.end();
  }
  [[nodiscard]] MigTrouble mig_trouble() const {
    return mig.known() ? mig->trouble : MigTrouble::kNone;
  }
  // Whether compute capabilities are judged by GPU, and not by the node's labels.
  [[nodiscard]] bool knows_capabilities() const {
    return !gpus.empty() && gpus.front().capability > 0;
  }
  // Whether the model of one of `gpus` is accepted.
  [[nodiscard]] bool AdmitsModelOf(std::size_t gpu, const RequestShape& shape) const {
    return shape.Admits(gpu_models.empty() ? gpu_model : gpu_models[gpu]);
  }
  // Its compute capability, too.
  [[nodiscard]] bool AdmitsKindOf(std::size_t gpu, const RequestShape& shape) const {
    const bool can = !knows_capabilities() || gpus[gpu].capability >= shape.min_capability;
    return can && AdmitsModelOf(gpu, shape);
  }
  // Its UUID; "" where the node has none of it, or does not say.
  [[nodiscard]] const std::string& UuidOf(int index) const;
  // Whether pods may ask for its `gpus` or places by that name; "": whatever their resource.
  [[nodiscard]] bool GivesGpusAs(std::string_view resource) const {
    if (!by_claims.empty()) return FindByName(by_claims, resource) != nullptr;
    return gpu_resource.empty() || resource.empty() || gpu_resource == resource;
  }
  // Whether whole GPUs are asked for by the resource of its `other_gpus`.
  [[nodiscard]] bool IsOfOtherGpus(const RequestShape& shape) const {
    return !other_gpus.empty() && std::holds_alternative<WholeGpus>(shape.gpus) &&
           FindOther(other_gpus, shape.gpu_resource) != nullptr;
  }
  // GpuSpec::unit_mib of its GPUs, which have one agent.
  [[nodiscard]] int unit_mib() const { return gpus.empty() ? 1 : gpus.front().unit_mib; }
  // Whether it offers GPUs of any kind, given out or not.
  [[nodiscard]] bool has_gpus() const { return !gpus.empty() || places.count > 0 || mig.known(); }
  // Whether who asks for a GPU gets a part of one: a place, or a partition or MIG device that
  // counts as a GPU.
  [[nodiscard]] bool gives_parts() const {
    return places.count > 0 || gpus_are_parts || (mig.known() && mig->single);
  }
};

// Error: kInvalidArgument naming the field: no name, a negative capacity, more than kMaxGpusPerNode
// GPUs, GPUs beside places, names of another number of GPUs, more missing GPUs than there are,
// links of another number of GPUs, invalid MIG devices.
Status Validate(const NodeSpec& spec);

// How many cores each of its GPUs has, where a resource of the node counts them; 0: not known.
std::int64_t CoresPerGpu(const NodeSpec& spec);

// Whether the node has every device that the placement names. Error: kInternal naming the first
// that it does not have.
Status CheckDevices(const Placement& placement, const NodeSpec& node);

// A GPU of the node is unhealthy, or the one that places are on: one less is missing without a
// name. said_by: who says so; the first such GPU of the node decides. Nothing changes if it is
// unhealthy already.
void CloseGpu(NodeSpec& spec, GpuSpec& gpu, std::string_view said_by);
// The GPU or MIG device of that name is unhealthy. A MIG device is closed where Berth picks the
// devices: where the kubelet does, it offers that one no more, and the counts stand. Returns
// whether the node has one of that name.
bool CloseNamed(NodeSpec& spec, std::string_view id, std::string_view said_by);

// What that many thousandths that a pod asked of its agent are of the GPU.
inline int MilliOf(const GpuSpec& spec, int asked) {
  return spec.cores <= 100 ? asked : (asked * 100 + spec.cores - 1) / spec.cores;
}

// MiB of what a pod asked of its agent as memory.
inline std::int64_t MibOf(const GpuSpec& spec, std::int64_t asked) { return asked * spec.unit_mib; }

// What a share takes of GPU `gpu`: both amounts filled in, the open one in proportion, rounded down
// so that three thirds of the memory fit. Empty if the GPU can never hold it: too small, or asked
// by memory that is unknown. Of several GPUs it is one of the shares. Inline: the innermost step of
// every evaluation.
inline std::optional<DeviceGrant> GrantOfShare(const GpuSpec& spec, int gpu,
                                               const GpuShare& share) {
  DeviceGrant grant{gpu, MilliOf(spec, share.milli), MibOf(spec, share.memory_mib)};
  if (share.memory_milli > 0) {
    if (spec.memory_mib == 0) return std::nullopt;
    grant.memory_mib = spec.memory_mib * share.memory_milli / kMilliPerGpu;
    if (share.milli == 0) grant.milli = share.memory_milli;
  } else if (share.memory_mib > 0) {
    if (grant.memory_mib > spec.memory_mib) return std::nullopt;  // also where it is not known (0)
    if (share.milli == 0) {
      const std::int64_t part = grant.memory_mib * kMilliPerGpu / spec.memory_mib;
      grant.milli = static_cast<int>(std::max<std::int64_t>(part, 1));
    }
  } else {
    grant.memory_mib = spec.memory_mib * share.milli / kMilliPerGpu;
  }
  return grant;
}

// What is free on one GPU.
struct GpuFree {
  int milli = kMilliPerGpu;
  int users = 0;  // where GpuSpec::most_users bounds them
  std::int64_t memory_mib = 0;
  [[nodiscard]] bool idle() const { return milli == kMilliPerGpu; }
  friend bool operator==(const GpuFree&, const GpuFree&) = default;
};

// Whether its agent serves one more pod on the GPU.
inline bool HasPlace(const GpuSpec& spec, const GpuFree& free) {
  return spec.most_users == 0 || free.users < spec.most_users;
}

// How many pods on the node ask for the same number of GPUs; gpus = 0 stands for a share. Pods with
// MIG devices are not among them.
struct Tenants {
  int gpus = 0;
  int pods = 0;
  friend bool operator==(const Tenants&, const Tenants&) = default;
};

class Node {
 public:
  // No bound pod has a priority as high as this.
  static constexpr int kNoPriority = std::numeric_limits<int>::max();

  // More than any pod asks for.
  static constexpr std::int64_t kNotTracked = std::numeric_limits<std::int64_t>::max();

  // What claims hold on one node; nullptr = nothing.
  using Claims = std::shared_ptr<const std::vector<ClaimedGpu>>;

  // Requires: pods sorted by UID, each once.
  explicit Node(std::shared_ptr<const NodeSpec> spec, PodRecords pods = {}, Claims claims = {});

  [[nodiscard]] const NodeSpec& spec() const { return *spec_; }
  [[nodiscard]] NodeLikeness likeness() const { return likeness_.Of(*this); }
  [[nodiscard]] std::int64_t free_cpu_milli() const { return free_cpu_milli_; }
  [[nodiscard]] std::int64_t free_memory_bytes() const { return free_memory_bytes_; }
  // kNotTracked where the node does not say how much it has.
  [[nodiscard]] std::int64_t free_ephemeral_bytes() const { return free_ephemeral_bytes_; }
  // One entry per GPU, by index.
  [[nodiscard]] std::span<const GpuFree> gpus() const { return gpus_; }
  // GPU pods on the node, by ascending number of GPUs.
  [[nodiscard]] std::span<const Tenants> tenants() const { return tenants_; }
  // The closed GPUs: unhealthy, or closed for the missing ones.
  [[nodiscard]] GpuMask closed() const { return closed_; }
  [[nodiscard]] bool IsOpen(int gpu) const { return (closed_ & GpuBit(gpu)) == 0; }
  // How many GPUs the node offers, held or not.
  [[nodiscard]] int healthy_gpus() const { return healthy_gpus_; }
  [[nodiscard]] int unhealthy_gpus() const {
    const auto own = std::ranges::count(spec_->gpus, false, &GpuSpec::foreign);
    return spec_->beside.in_slices > 0 ? 0 : static_cast<int>(own) - healthy_gpus_;
  }
  // Free places; negative with pods bound past Berth.
  [[nodiscard]] int free_places() const {
    std::int64_t free = spec_->places.count - spec_->missing - places_taken_;
    for (const int gpu : spec_->places.unwell) free += places_on_[static_cast<std::size_t>(gpu)];
    if (claims_ != nullptr) free -= PlacesOfClaims();
    return static_cast<int>(std::max<std::int64_t>(free, -kMaxGpuPlaces));
  }
  // The GPUs with several users that claims hold: nothing more of them is given.
  [[nodiscard]] GpuMask claimed_places() const {
    return claims_ == nullptr ? 0 : PlacesHeldByClaims(spec_->places, *claims_);
  }
  // Of NodeSpec::other_gpus.
  [[nodiscard]] std::int64_t FreeOtherGpus(const OtherResource& other) const;
  [[nodiscard]] int places_taken() const {
    return static_cast<int>(std::min<std::int64_t>(places_taken_, kMaxGpuPlaces));
  }
  // Of these, those that are known to be on each of its GPUs, by index. Empty: the GPUs have no
  // names (GpuPlaces::uuids).
  [[nodiscard]] std::span<const int> places_on() const { return places_on_; }
  // The taken MIG devices; empty without any.
  [[nodiscard]] const MigUse& mig() const { return mig_; }
  // Sum of free GPU compute, thousandths.
  [[nodiscard]] std::int64_t free_gpu_milli() const;

  // The pods on the node, by UID.
  [[nodiscard]] std::span<const std::shared_ptr<const PodRecord>> pods() const { return pods_; }
  [[nodiscard]] const PodRecord* FindPod(std::string_view uid) const;  // nullptr = not here
  [[nodiscard]] const Claims& claims() const { return claims_; }
  // The GPUs that they hold.
  [[nodiscard]] GpuMask claimed() const { return claimed_; }
  // Whether a claim that kube-scheduler made for the pod's own GPUs is known here. It holds them,
  // and the pod's grants hold nothing beside it.
  [[nodiscard]] bool IsHeldByClaim(const PodRequest& pod) const;
  // The GPUs with shares of pods that use compute in another way than the shape (ShareMode), and
  // all that are in use where those of such a pod are unknown. stays: which pods count.
  template <class Stays>
  [[nodiscard]] GpuMask KeptFrom(const RequestShape& shape, Stays stays) const {
    GpuMask kept = 0;
    if (with_mode_ == 0 && shape.share_mode == ShareMode::kUnsaid) return kept;
    for (const auto& pod : pods_) {
      const RequestShape& other = pod->pod.shape;
      if (!other.is_share() || other.share_mode == shape.share_mode || !stays(*pod)) continue;
      kept |= IsAssumed(*pod) ? used() : GpusAmong(pod->placement.grants, gpus_.size());
    }
    return kept;
  }
  [[nodiscard]] GpuMask KeptFrom(const RequestShape& shape) const {
    return KeptFrom(shape, [](const PodRecord&) { return true; });
  }
  // The GPUs in use, wholly or in part.
  [[nodiscard]] GpuMask used() const {
    GpuMask used = 0;
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      if (!gpus_[gpu].idle()) used |= GpuBit(static_cast<int>(gpu));
    }
    return used;
  }
  // How many of the pods say a ShareMode.
  [[nodiscard]] int with_mode() const { return with_mode_; }
  // How many of the pods have only assumed GPUs.
  [[nodiscard]] int unattributed() const { return unattributed_; }
  // Whether the pod, which is on the node, has that very GPU of its grants: the node has it, and
  // no other pod was given it, by a claim either where kube-scheduler gives GPUs.
  [[nodiscard]] bool HasOf(const PodRecord& pod, const DeviceGrant& grant) const;
  // The lowest priority of its bound pods (a reservation is not evicted); kNoPriority without any.
  [[nodiscard]] int lowest_priority() const { return lowest_priority_; }

  // Whether the placement fits what is free now. Error: kConflict naming the resource.
  [[nodiscard]] Status CanTake(const Placement& placement) const;
  // The same of that pod: a claim may hold its GPUs for it already.
  [[nodiscard]] Status CanTake(const Placement& placement, const PodRequest& pod) const;

  // Adds a pod, in place of the one with its UID if there is one / removes the pod with that UID.
  void Put(std::shared_ptr<const PodRecord> pod);
  void Remove(std::string_view uid);

  // This node without the pods for which `leaves` holds.
  template <class Leaves>
  [[nodiscard]] Node Without(Leaves leaves) const {
    PodRecords stay;
    stay.reserve(pods_.size());
    for (const auto& pod : pods_) {
      if (!leaves(*pod)) stay.push_back(pod);
    }
    return Node(spec_, std::move(stay), claims_);
  }
  // This node with these claims in place of its own.
  [[nodiscard]] Node WithClaims(Claims claims) const {
    return Node(spec_, pods_, std::move(claims));
  }

  // Equal spec and equal free amounts.
  friend bool operator==(const Node& a, const Node& b);

 private:
  void CountAll();
  void CountMig();
  void FindLowestPriority();
  void Count(const PodRecord& pod, int sign);
  void FindGiven();
  void NoteGiven(const PodRecord& pod);
  [[nodiscard]] bool IsGivenAnothers(const PodRecord& pod) const;
  // Those on GPUs that claims hold and that nobody has.
  [[nodiscard]] std::int64_t PlacesOfClaims() const;
  void Take(std::span<const DeviceGrant> grants, int sign);
  [[nodiscard]] bool Has(int gpu) const { return spec_->FindGpu(gpu) != nullptr; }
  [[nodiscard]] bool IsAssumed(const PodRecord& pod) const;
  // What the pod has of the GPUs by the resource of their cores, which Berth does not place.
  [[nodiscard]] std::int64_t MilliByCores(const PodRecord& pod) const;
  void Assume(const PodRecord& pod);
  [[nodiscard]] std::vector<DeviceGrant> AssumedGrants(const RequestShape& shape,
                                                       const GpuAsk& ask) const;
  // More is held of each of its GPUs than it has.
  [[nodiscard]] bool IsOverfull() const;
  void FindClosed();

  // What an evaluation reads comes first.
  std::shared_ptr<const NodeSpec> spec_;
  RememberedLikeness likeness_;
  std::int64_t free_cpu_milli_ = 0;
  std::int64_t free_memory_bytes_ = 0;
  std::int64_t free_ephemeral_bytes_ = kNotTracked;
  std::vector<GpuFree> gpus_;
  GpuMask closed_ = 0;
  int healthy_gpus_ = 0;
  std::int64_t places_taken_ = 0;
  std::vector<int> places_on_;
  std::vector<Tenants> tenants_;
  PodRecords pods_;
  Claims claims_;
  int unattributed_ = 0;
  int with_mode_ = 0;
  int lowest_priority_ = kNoPriority;
  GpuMask claimed_ = 0;
  MigUse mig_;
  // By GPU: the pod that was given it, of several the one that counts. Empty: nobody knows of any.
  std::vector<const PodRecord*> given_;
};

}  // namespace berth
