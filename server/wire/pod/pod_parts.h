// SPDX-License-Identifier: Apache-2.0
//
// PodParts: the parts of a Pod that matter here, as decoded, before rules and dialects make a
// PodRequest of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

// What a pod asks for in MIG devices.
//
//   resources nvidia.com/mig-PROFILE, also with .shared behind it (topology/mig/mig_product.h)
//   nvidia.com/gpu: N with one or both of the annotations
//     berth.dev/mig-min-slices: "2"         compute slices
//     berth.dev/mig-min-memory-gib: "10"    usable memory
//   which are N devices, each of any profile that has at least so much

// How many devices of each name; sorted by profile, plain ones first.
struct MigCount {
  MigResource resource;
  std::int64_t count = 0;
  friend bool operator==(const MigCount&, const MigCount&) = default;
};
class MigCounts {
 public:
  void Add(const MigResource& resource, std::int64_t count);
  MigCounts& operator+=(const MigCounts& other);
  // The larger of each.
  void Raise(const MigCounts& other);
  [[nodiscard]] bool empty() const { return counts_.empty(); }
  [[nodiscard]] std::int64_t total() const;
  // Requires: total() is at most kMaxMigDevicesPerPod.
  [[nodiscard]] MigSlices ToSlices() const;

 private:
  MigCount& Of(const MigResource& resource);

  std::vector<MigCount> counts_;
};

bool IsMigNeedKey(std::string_view key);
// Reads one of the two annotations. Error: kInvalidArgument "want 1..100000, got TEXT".
Status ReadMigNeed(std::string_view key, std::string_view value, MigWant& need);

// Makes the pod's whole GPUs, and those of its containers, devices that satisfy the need. Error:
// kInvalidArgument where the pod asks for something else than whole GPUs.
Status ApplyMigNeed(const MigWant& need, PodRequest& pod);

// Error: a MIG resource as the pages of some clouds write it, "nvidia.com/mig1g.5gb".
Status CheckMigName(std::string_view resource);

// PodMoveWords: what a Pod and the agents around it say of moving it, in the words of Kubernetes,
// Karpenter and cluster-autoscaler. Nothing of the texts is kept.
struct PodMoveWords {
  bool do_not_disrupt = false;
  bool not_safe = false, safe = false;  // cluster-autoscaler's two words
  bool has_host_path = false;
  int deletion_cost = 0;
  int grace_seconds = 30;

  // Whether the annotation is one of them. No dialect reads these.
  static bool Reads(std::string_view key);
  // What cannot be read says nothing, as its owner has it. Requires: Reads(key).
  void Take(std::string_view key, std::string_view value);
  // Of a pod that has a controller.
  [[nodiscard]] Mobility mobility() const;
};

// Sums and products of asks stop at a bound that no node reaches (4 PiB, where it is bytes), and of
// which thousands of pods on one node make no sum that overflows.
inline constexpr std::int64_t kMostAsked = std::int64_t{1} << 52;
inline std::int64_t Capped(std::int64_t amount) { return std::min(amount, kMostAsked); }

// Whether kube-scheduler counts it and Berth gives it to nobody, unless Berth reads it. Names with
// Kubernetes' own domain (alpha.kubernetes.io/nvidia-gpu, which no node has since 1.11) are counted
// as others are. (k8s.io/kubernetes, IsScalarResourceName)
inline bool IsCountedElsewhere(std::string_view name) {
  return IsOtherResource(name) || name.find("kubernetes.io/") != std::string_view::npos;
}

// What an annotation of a pod may have: pods are written by tenants, and thousands of them are
// kept. Records of devices (DialectKeys::grants) are read and not kept, and may be as long as they
// are.
inline constexpr std::size_t kMostAnnotationBytes = 8192;
inline constexpr std::size_t kMostListed = 64;  // words, models or UUIDs of one list

// What one container (or the overhead, or the pod as a whole) asks for.
struct ResourceAsk {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t share_milli = 0;
  std::int64_t share_bytes = 0;
  std::int64_t share_memory_milli = 0;  // in place of bytes: of the memory of whichever GPU
  // The share is one of each of so many GPUs; 0 = of one. Dialects see to it that all containers
  // with shares say the same, or have GPUs of their own.
  std::int64_t share_gpus = 0;
  bool share_by_container = false;  // its agent gives each container GPUs of its own
  MigCounts mig = {};
  std::int64_t gpu_memory_mib_each = 0;  // of each of the GPUs at least; 0 = not said
  std::int64_t gpu_memory_percent = 0;   // the same of its memory
  std::int64_t gpu_cores_percent = 0;    // the same of its compute
  // The resource by which a part of a GPU is asked for, as long as no dialect has made a share of
  // it (Dialect::FindShares); empty = none.
  std::string_view part_resource = {};
  // In whose words GPUs, or the share of one, are asked for (RequestShape::share_agent); empty:
  // Berth's.
  std::string_view share_agent = {};
  bool several_share_agents = false;
  // How much of a dialect's own resources, which it alone reads (Dialect::FindShares).
  std::array<std::int64_t, 5> agent_amounts = {};
  // By which resource of the rules the GPUs are asked for, and another one; empty = none.
  std::string gpu_resource = {};
  std::string other_gpu_resource = {};
  OtherResources others = {};  // as in PodRequest
  bool other_devices = false;  // of resources that nobody here reads
  bool rdma_devices = false;   // among these
  bool unread = false;         // such resources, and those of Kubernetes that only it reads

  ResourceAsk& operator+=(const ResourceAsk& other);
  // The larger of each.
  void Raise(const ResourceAsk& other);
  [[nodiscard]] bool wants_gpu() const { return gpus > 0 || wants_share() || !mig.empty(); }
  [[nodiscard]] bool wants_share() const {
    return share_milli > 0 || share_bytes > 0 || share_memory_milli > 0;
  }

 private:
  void AddWords(const ResourceAsk& other);
};

enum class ContainerKind { kInit, kSidecar, kMain };

struct ContainerSpec {
  std::string name;
  ContainerKind kind = ContainerKind::kMain;
  ResourceAsk ask;
};

// The parts of a pod that matter here, as decoded.
struct PodParts {
  PodId id;
  // Init containers first, each kind in the order of the spec.
  std::vector<ContainerSpec> containers;
  ResourceAsk overhead;
  std::optional<std::int64_t> pod_cpu_milli;  // spec.resources.requests
  std::optional<std::int64_t> pod_memory_bytes;
  // Those that some dialect reads (dialect.h).
  std::map<std::string, std::string, std::less<>> annotations;
  // The first of them that is longer than kMostAnnotationBytes; only its beginning is
  // kept, and how long it is.
  std::pair<std::string, std::size_t> too_long = {};
  std::string problem;  // the first thing that could not be read; empty = none
  bool gated = false;   // scheduling gates hold it back
  int priority = 0;
  bool may_preempt = true;
  std::string pod_group;       // spec.schedulingGroup.podGroupName
  std::string scheduler;       // spec.schedulerName; empty = the default one
  std::string priority_class;  // spec.priorityClassName; empty = none
  std::string controller;      // the UID of its controller; empty = none
  std::string controller_kind, controller_api, controller_name;  // "Job", "batch/v1"
  bool of_daemon_set = false;
  bool completes = false;             // PodLife::completes
  std::int64_t deadline_seconds = 0;  // PodRequest::deadline_seconds
  PodMoveWords move;
  bool claims_devices = false;      // spec.resourceClaims
  std::vector<std::string> claims;  // PodRequest::claims
  std::uint64_t made_claim = 0;     // PodRequest::made_claim
  OwnToScheduler own_to_scheduler;  // without the resources
  Labels labels;
  NodeConstraints constraints;

  // nullptr: it has none of that key.
  [[nodiscard]] const std::string* Annotation(std::string_view key) const {
    const auto found = annotations.find(key);
    return found == annotations.end() ? nullptr : &found->second;
  }
};

// kInvalidArgument "annotation KEY: WHAT".
tl::unexpected<Error> WrongAnnotation(std::string_view key, std::string_view what);
// `want WANT, got "GOT"`, with no more than the beginning of GOT.
std::string WantedText(std::string_view want, std::string_view got);

// What the containers ask for together, by the rule of Kubernetes (pod_rules.h).
ResourceAsk EffectiveAsk(const PodParts& parts);

}  // namespace berth::wire
