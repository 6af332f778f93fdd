// SPDX-License-Identifier: Apache-2.0
//
// PodRequest: what one pod asks for, in Berth's own terms. A value.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/dns_name.h"
#include "cluster/values/gang.h"
#include "cluster/values/node_constraints.h"
#include "topology/links/gpu_links.h"
#include "topology/mig/mig_product.h"

namespace berth {

// OtherResources: amounts of what Berth gives to nobody and kube-scheduler counts: the devices of
// other plugins ("rdma/hca") and huge pages. A node has them, pods ask for them; plans count them
// (scoring/explain/other_limits.h).

struct OtherResource {
  std::string name;         // as Kubernetes has it
  std::int64_t amount = 0;  // >= 0; of huge pages bytes
  friend auto operator<=>(const OtherResource&, const OtherResource&) = default;
};
using OtherResources = std::vector<OtherResource>;  // sorted by name, each once

// Of one pod, and of one node. Others are left out.
inline constexpr std::size_t kMostOtherResources = 32;
inline constexpr std::size_t kMostOtherNameBytes = 317;  // a domain, and a name in it
// Sums over thousands of pods cannot overflow.
inline constexpr std::int64_t kMostOtherAmount = std::int64_t{1} << 52;

// nullptr: it is not there.
inline const OtherResource* FindOther(const OtherResources& all, std::string_view name) {
  const auto at = std::ranges::lower_bound(all, name, {}, &OtherResource::name);
  return at == all.end() || at->name != name ? nullptr : &*at;
}

// Its amount there, 0 at first; nullptr where there is no room for it.
inline std::int64_t* AmountOf(OtherResources& all, std::string_view name) {
  const auto at = std::ranges::lower_bound(all, name, {}, &OtherResource::name);
  if (at != all.end() && at->name == name) return &at->amount;
  if (all.size() >= kMostOtherResources || name.size() > kMostOtherNameBytes) return nullptr;
  return &all.insert(at, {std::string(name), 0})->amount;
}

// Whether it is one of them, unless Berth reads it: an extended resource, which has a domain that
// is not Kubernetes' own, or huge pages.
inline bool IsExtendedResource(std::string_view name) {
  const std::size_t domain = name.find('/');
  return domain != std::string_view::npos && !name.substr(0, domain).ends_with("kubernetes.io");
}
inline bool IsOtherResource(std::string_view name) {
  return IsExtendedResource(name) || name.starts_with("hugepages-");
}

// A pod asks for whole GPUs, or for shares of GPUs, or for MIG devices, or for none.
struct NoGpu {
  friend auto operator<=>(const NoGpu&, const NoGpu&) = default;
};
struct WholeGpus {
  int count = 1;  // 1..64, all on one node
  friend auto operator<=>(const WholeGpus&, const WholeGpus&) = default;
};
// A share of a GPU, or an equal one of each of several GPUs: compute in thousandths, memory in MiB
// or in thousandths of the chosen GPU's. Without compute, or without memory, the one follows the
// other in proportion to the chosen GPU. At least one amount is set, and of memory at most one.
struct GpuShare {
  int milli = 0;                // 0..1000
  std::int64_t memory_mib = 0;  // >= 0
  int memory_milli = 0;         // 0..1000
  int count = 1;                // 1..64 GPUs, all on one node
  friend auto operator<=>(const GpuShare&, const GpuShare&) = default;
};
// Both amounts of the same GPU.
inline GpuShare Plus(const GpuShare& a, const GpuShare& b) {
  return {a.milli + b.milli, a.memory_mib + b.memory_mib, a.memory_milli + b.memory_milli, a.count};
}
// MIG devices: `count` of one profile, by name; or, without a name, of any plain profile that has
// at least the given slices and memory.
struct MigWant {
  std::optional<MigProfile> profile;
  bool shared = false;              // by name: those that time slicing renames (.shared)
  int min_slices = 0;               // of compute
  std::int64_t min_memory_mib = 0;  // usable
  int count = 1;                    // 1..kMaxMigDevicesPerPod, all wants of a pod together
  friend auto operator<=>(const MigWant&, const MigWant&) = default;
};
struct MigSlices {
  std::vector<MigWant> wants;  // sorted; either one without a name, or names, each once
  friend auto operator<=>(const MigSlices&, const MigSlices&) = default;

  [[nodiscard]] bool by_name() const { return !wants.empty() && wants.front().profile; }
  [[nodiscard]] int count() const;  // devices in all
};
constexpr int kMaxMigDevicesPerPod = 64;

using GpuAsk = std::variant<NoGpu, WholeGpus, GpuShare, MigSlices>;

constexpr int kMilliPerGpu = 1000;
constexpr int kMaxGpusPerNode = 64;     // device sets are 64-bit masks
constexpr int kMaxGpusPerPod = 65'536;  // GPUs, or replicas of them

// What has to keep the pod apart from others on the same GPU, the weakest first.
enum class Isolation : std::uint8_t {
  kUnsaid,    // nothing; a whole GPU is better than a part of one
  kNone,      // nothing
  kMemory,    // something that keeps everybody to their part of the memory
  kHardware,  // it has the GPU, or the MIG device, for itself
};

// What pods of one workload keep off each other for reliability, where they can.
enum class Spread : std::uint8_t {
  kNone,
  kCard,  // the GPUs that others of it have a part of
  kNode,  // the nodes of the others
};

// How pods with shares of a GPU use its compute. All pods on a GPU say the same.
enum class ShareMode : std::uint8_t {
  kUnsaid,
  kTimeSlicing,
  kSmSharing,
  kReserved,  // of a whole GPU: its scheduler gives shares of it to other pods
};

// A GPU by its UUID: accepted, or not.
struct GpuRule {
  bool refused = false;
  std::string uuid;  // not empty
  friend auto operator<=>(const GpuRule&, const GpuRule&) = default;
};

// Pods of the namespace beside whose GPUs those of a pod are to be, or are not to be, by their
// labels. It is a preference: how far it goes is in scoring/devices/neighbours.h.
struct Neighbours {
  std::string namespace_name;  // the pod's own; empty if it says nothing of them
  LabelSelector near, far;     // empty: it does not say

  [[nodiscard]] bool empty() const { return near.empty() && far.empty(); }
  friend auto operator<=>(const Neighbours&, const Neighbours&) = default;
};

// The GPUs of one container, of a pod in which several ask for some.
struct GpuStep {
  int count = 0;
  bool ends_first = false;  // as in ContainerAsk
  GpuShare share = {};      // of each of them; not of whole ones
  friend auto operator<=>(const GpuStep&, const GpuStep&) = default;
};
constexpr std::size_t kMostGpuSteps = 16;

// Containers that ask for GPUs, as bits in their order; 0: all.
using ContainerMask = std::uint32_t;

// What these have together of one GPU, the most at a time. Its count is that of each of them; 0:
// they ask for different numbers of GPUs.
GpuShare SumOf(const std::vector<GpuStep>& steps, ContainerMask containers);

// Everything that decides where a pod fits and how well. Pods of one shape are interchangeable for
// the engine, which evaluates nodes once per shape.
struct RequestShape {
  // The effective requests of the pod (Kubernetes' rule); CPU in thousandths of a core.
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  GpuAsk gpus;
  std::vector<std::string> models;   // accepted GPU models, sorted, unique; empty = any
  std::int64_t ephemeral_bytes = 0;  // local ephemeral storage, by the same rule
  LinkAsk links = {};                // the default for fewer than two GPUs
  // The resource by which whole GPUs are asked for, if pods can use several ("amd.com/gpu"); empty:
  // any.
  std::string gpu_resource = {};
  Isolation isolation = Isolation::kUnsaid;
  int min_capability = 0;  // of the GPUs (CapabilityNumber); 0 = not said
  // Of whole GPUs: memory that each has at least, or each part that stands for one; 0 = not said.
  std::int64_t min_gpu_memory_mib = 0;
  // Who has to hand out the share of a GPU, or the GPUs, by the words in which they are asked for
  // (NodeSpec::share_agent); empty: any agent that reads what Berth writes.
  std::string share_agent = {};
  // It asks for several whole GPUs, and none of its containers for more than one.
  bool one_per_container = false;
  ShareMode share_mode = ShareMode::kUnsaid;
  ModelRules model_rules = {};
  // Sorted, unique. GPUs are those that are accepted, if there are such, and none of the refused.
  std::vector<GpuRule> gpu_rules = {};
  Spread spread = Spread::kNone;
  std::string workload = {};  // equal for all pods of it; empty unless they spread
  NodeWishes nodes = {};      // of a pod with GPUs
  Neighbours neighbours = {};
  bool beside_nic = false;  // it asks for RDMA devices: its GPUs are to be next to NICs
  // Whole GPUs by container, in the order in which the kubelet gives them; empty: one container
  // asks for all, or there are more than kMostGpuSteps. Of shares only where the agent gives each
  // container GPUs of its own.
  std::vector<GpuStep> gpu_steps = {};

  friend bool operator==(const RequestShape&, const RequestShape&) = default;
  friend auto operator<=>(const RequestShape&, const RequestShape&) = default;

  [[nodiscard]] bool wants_gpu() const { return !std::holds_alternative<NoGpu>(gpus); }
  [[nodiscard]] bool is_share() const { return std::holds_alternative<GpuShare>(gpus); }
  // Whether its containers may have their parts of different GPUs.
  [[nodiscard]] bool may_divide() const { return is_share() && !gpu_steps.empty(); }
  // Whether they may all have them of the same GPUs.
  [[nodiscard]] bool may_stay_together() const {
    return !may_divide() || SumOf(gpu_steps, 0) == std::get<GpuShare>(gpus);
  }
  // nullptr where it does not ask for MIG devices.
  [[nodiscard]] const MigSlices* mig() const { return std::get_if<MigSlices>(&gpus); }
  // Whole GPUs, two or more: these do not become free by themselves soon.
  [[nodiscard]] bool wants_several_gpus() const {
    const auto* const whole = std::get_if<WholeGpus>(&gpus);
    return whole != nullptr && whole->count >= 2;
  }
  // How many GPUs it uses, wholly or in part, that are not partitioned.
  [[nodiscard]] int gpu_count() const;
  // Compute asked of each of these, in thousandths; 0 for a share by memory alone (it depends on
  // the GPU) and where there are none.
  [[nodiscard]] int milli_per_gpu() const;
  // Whether it asks for whole GPUs and does not say what it needs of them.
  [[nodiscard]] bool is_plain() const {
    return std::holds_alternative<WholeGpus>(gpus) && isolation == Isolation::kUnsaid &&
           min_gpu_memory_mib == 0;
  }
  // Whether the GPU model is accepted, by `models` and by the rules.
  [[nodiscard]] bool Admits(std::string_view model) const;
  // Whether the GPU with that UUID is accepted. One whose UUID is not known ("") may be any: it is
  // none of the accepted ones, and may be a refused one.
  [[nodiscard]] bool AdmitsGpu(std::string_view uuid) const;
};

std::size_t HashValue(const RequestShape& shape);
std::size_t HashValue(const NodeConstraints& constraints);

// Which part of the pod's devices goes to which container, in the pod's order.
struct ContainerAsk {
  std::string name;
  GpuAsk gpus;
  // An init container that ends before the others start: its devices are part of the pod's set and
  // are reused by the containers after it.
  bool ends_first = false;
  int index = 0;  // among all containers of the pod, init containers first
  friend bool operator==(const ContainerAsk&, const ContainerAsk&) = default;
};

struct PodId {
  std::string uid;  // from the API server; "namespace/name" where a client sent none
  std::string namespace_name;
  std::string name;
  [[nodiscard]] std::string full_name() const { return FullName(namespace_name, name); }
  friend bool operator==(const PodId&, const PodId&) = default;
};

// How close to each other the members of a pod's group must or should be: levels of the configured
// topology by index, 0 the widest. A pod without a group is a group of one.
struct DomainAsk {
  std::optional<std::size_t> required;   // all in one domain of this level, or they wait
  std::optional<std::size_t> preferred;  // in one of this level if possible; empty: as close
                                         // as possible
  bool unconstrained = false;            // it does not matter
  friend bool operator==(const DomainAsk&, const DomainAsk&) = default;
};

// What kube-scheduler alone judges of a pod and depends on the other pods of a node.
struct OwnToScheduler {
  bool host_ports = false;
  bool volumes = false;       // that a node attaches so many of, or one pod at a time has
  bool resources = false;     // such that Berth does not read, huge pages, claims
  bool keeps_apart = false;   // required anti-affinity
  bool minds_others = false;  // required affinity, or spreading that is required
  friend bool operator==(const OwnToScheduler&, const OwnToScheduler&) = default;
};

// Whether a running pod may be moved: evicted, so that its controller makes it anew elsewhere. The
// pod's own word (PodRequest::keep) comes on top.
enum class Mobility : std::uint8_t {
  kUnknown,         // nobody has said who makes it anew: it stays
  kMoves,           // a controller makes it anew
  kNoController,    // nobody makes it anew
  kComesBack,       // it belongs to its node: of a DaemonSet, or a static pod
  kDoNotDisrupt,    // karpenter.sh/do-not-disrupt
  kNotSafeToEvict,  // cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
  kHostPath,        // it has a directory of its node, and does not say that it is safe to evict
};
inline constexpr std::size_t kMobilities = 7;
inline constexpr int kMostGraceSeconds = 86'400;
inline constexpr std::int64_t kMostRunSeconds = 31'536'000;  // a year
inline constexpr std::size_t kMostControllerBytes = 64;      // the API server's UIDs have 36

// Berth chooses devices for pods with so many ResourceClaims at most.
inline constexpr std::size_t kMostPodClaims = 8;

struct PodRequest {
  PodId id;
  RequestShape shape;
  std::vector<ContainerAsk> containers;  // those that ask for GPUs
  int container_count = 0;               // of all, init containers too
  // Why no node can take this pod (an unreadable annotation, a request beyond any GPU); empty = it
  // can be placed.
  std::string refusal;

  // Preemption. None of this decides where the pod fits, so none of it is in the shape.
  int priority = 0;         // a pod may only be evicted for one of higher priority
  bool may_preempt = true;  // preemptionPolicy is not Never
  Gang gang = {};           // empty = it is in none
  // spec.schedulerName; empty = the default one. Members of a gang wait together only if one
  // scheduler places them all.
  std::string scheduler = {};
  DomainAsk domain = {};
  std::shared_ptr<const NodeConstraints> constraints = nullptr;  // nullptr = none
  std::shared_ptr<const Labels> labels = nullptr;                // nullptr = none
  int init_container_count = 0;                                  // of container_count, sidecars too
  // Without GPUs it may still have business on a node of any kind: it is of a DaemonSet or of the
  // system, or asks for other devices (ResourceClaims, resources that we do not know).
  bool belongs_on_any_node = false;
  // The workload classes that it matches, by name and in their order; the first is its own.
  std::vector<std::string> classes = {};
  // The DeviceClass by which kube-scheduler gives it the GPUs that it asks for, on nodes that do
  // not offer that resource themselves (DRA); empty: there is none.
  std::string device_class = {};
  // When it saved its work last, as it says itself (berth.dev/checkpointed-at); empty: it does not.
  std::optional<WallTime> checkpointed = std::nullopt;
  // It is not to be moved to another node, as it says itself (berth.dev/keep).
  bool keep = false;
  OwnToScheduler own_to_scheduler = {};
  std::string role = {};  // in its gang (Gang::roles); empty = it says none
  bool leads = false;     // it is the leader of its gang, if others follow (Gang::followers)
  std::shared_ptr<const OtherResources> others = nullptr;  // that it asks for; nullptr = none
  // Its ResourceClaims, by name in its namespace; "" = one that was not made yet from its template.
  // Of more than kMostPodClaims the first, and one more.
  std::vector<std::string> claims = {};
  // Stands for the name of the claim that kube-scheduler made for what it asks for by the name of a
  // resource, as its status says (NumberOfClaim); 0: there is none.
  std::uint64_t made_claim = 0;
  Mobility mobility = Mobility::kUnknown;
  int deletion_cost = 0;   // controller.kubernetes.io/pod-deletion-cost
  int grace_seconds = 30;  // terminationGracePeriodSeconds, 0..kMostGraceSeconds
  // How long it runs from status.startTime on, seconds, 1..kMostRunSeconds; 0: that is not said. By
  // its own word (berth.dev/expected-duration), and until the kubelet ends it, its grace period
  // aside (spec.activeDeadlineSeconds).
  std::int64_t expected_seconds = 0;
  std::int64_t deadline_seconds = 0;
  // UID of the object that makes it anew, at most kMostControllerBytes; empty: there is none, or it
  // is not known.
  std::string controller = {};
  // Of a pod with GPUs that ends with its work: stands for what it is one run of, by the kind and
  // the name of its controller without the part that each run has anew. Pods of one series in a
  // namespace run about as long (scoring/earmarks/pod_ends.h). 0: it is of none, or not known.
  std::uint64_t series = 0;

  // So many pods that ask for what it asks come when it runs.
  [[nodiscard]] int followers() const { return leads ? gang.followers : 0; }
};

// Why the pod does not start together with pods of its gang that say this and that this scheduler
// places: "m1 says that 3 pods must start together, others say 2"; "" = it does.
std::string WhyApart(const PodRequest& pod, const Gang& says, const std::string& scheduler);
inline std::span<const Toleration> TolerationsOf(const PodRequest& pod) {
  if (pod.constraints == nullptr) return {};
  return pod.constraints->tolerations;
}

// RefusedAsk: what pods asked for that the kubelet of a node refused. The node goes on taking pods
// that ask for something else, so it is remembered beside the node, not for all of it.

struct RefusedAsk {
  // Pods with more containers that ask for GPUs are not remembered.
  static constexpr std::size_t kMostContainers = 16;

  GpuAsk gpus;                     // of the whole pod
  std::vector<GpuAsk> containers;  // of each container that asks for GPUs, in the pod's order
  // Any of these may have been why: pods that ask for less may be admitted.
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_bytes = 0;
  OtherResources others = {};
  friend bool operator==(const RefusedAsk&, const RefusedAsk&) = default;

  // Returns whether the pod / the other asks for the same GPUs, container by container, and for no
  // less of all the rest.
  [[nodiscard]] bool Covers(const PodRequest& pod) const;
  [[nodiscard]] bool Covers(const RefusedAsk& other) const;
};

// What the pod asks for; nullopt: no GPUs, or too many containers.
std::optional<RefusedAsk> RefusedAskOf(const PodRequest& pod);

// Those of one node, at most kMostRefusedAsks; nullptr: none.
using RefusedAsks = std::shared_ptr<const std::vector<RefusedAsk>>;
constexpr std::size_t kMostRefusedAsks = 8;

}  // namespace berth
