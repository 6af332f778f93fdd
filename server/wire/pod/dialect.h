// SPDX-License-Identifier: Apache-2.0
//
// Dialect: what one ecosystem says about GPUs on Nodes and Pods, and what its agent has to be told
// when a pod is bound. Dialects are implemented in server/dialects; this room knows none by name.
//
// They are asked in order of precedence (server/dialects/registry.h), and each adds what no earlier
// one has said:
//
//   a Node   ReadNode -> CountGpus, Links (until one fits the node), AddMig
//   a Pod    AddAsk per resource, AddAnnotated, FindShares, FinishAsk, ReadGroup; of a bound one
//            ReadGrants
//   a bind   WriteGrants
//   a file   TakeGroup
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "base/text.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/node/mig_library.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/node.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "config/config.h"
#include "server/wire/node/agent_annotations.h"
#include "server/wire/pod/pod_parts.h"
#include "topology/domains/domain_tree.h"
#include "topology/links/link_matrix.h"

namespace berth::wire {

class PodRules;
struct ObservedPod;

using Annotations = std::vector<std::pair<std::string, std::string>>;

// The keys that a dialect reads. One that ends in '/', '-' or '.' stands for all that begin so.
struct DialectKeys {
  std::span<const std::string_view> of_nodes = {};    // annotations
  std::span<const std::string_view> conditions = {};  // of nodes, by their types
  std::span<const std::string_view> of_pods = {};     // the same
  std::span<const std::string_view> resources = {};
  std::span<const std::string_view> node_resources = {};  // nodes say how much they have
  // The annotations by which a bound pod has its devices, the most exact first. A '*' stands for
  // the name of a container.
  std::span<const std::string_view> grants = {};
  // These count on nodes that say something in this dialect, and on no others.
  bool grants_of_own_nodes = false;
};

// --- Nodes

// Which of several GPU resources of a node counts, the least first (CountedOf).
enum class GpuRank : std::uint8_t {
  kPart,        // known: one is a fixed part of a GPU
  kWhole,       // known: one is a GPU
  kConfigured,  // as the configuration says
};

struct DeviceCount {
  std::string resource;  // "nvidia.com/gpu"
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  GpuRank rank = GpuRank::kConfigured;
};

// References and views: valid while the node is decoded.
struct NodeFacts {
  const Labels& labels;
  std::string_view product;  // of the label
  // Those that some dialect reads.
  const std::map<std::string, std::string, std::less<>>& annotations;
  MigLibrary& library;  // of MIG products
  // Of the resources that some dialect reads; those that the node does not have are left out.
  std::span<const DeviceCount> resources = {};
  // GPUs of the counted vendor, by the machine type or a label of the cloud; 0 = not known.
  std::int64_t machine_gpus = 0;
  // The status of those conditions, by type, that some dialect reads.
  const std::map<std::string, std::string, std::less<>>& conditions;

  // "" where it is not there.
  [[nodiscard]] std::string_view Annotation(std::string_view key) const {
    const auto found = annotations.find(key);
    return found == annotations.end() ? std::string_view() : found->second;
  }
  // Nothing where the node does not have it.
  [[nodiscard]] DeviceCount Resource(std::string_view name) const {
    for (const DeviceCount& count : resources) {
      if (count.resource == name) return count;
    }
    return {};
  }
};

struct AnnouncedUuids {
  std::string_view annotation;              // where they were read
  Result<std::vector<std::string>> by_gpu;  // by index
};

// GPUs that an agent hands out in parts, in place of what the numbers of the resources stand for.
struct SharedGpus {
  std::string agent;     // NodeSpec::share_agent
  std::string resource;  // by which it is asked for GPUs
  Isolation isolation = Isolation::kNone;
  bool serves_all = false;               // NodeSpec::agent_serves_all
  std::vector<GpuSpec> gpus = {};        // by index
  std::vector<std::string> models = {};  // of these, as GPU Feature Discovery writes them; or empty
  int missing = 0;                       // so many of them, it is not known which
};

// What the numbers of the node's GPU resources stand for.
struct GpuDraft {
  std::vector<DeviceCount> devices;  // by GPU resource; none below 0
  std::int64_t gpu_memory_mib = 0;   // of each device, as the node says; 0 = not known
  bool parts = false;                // each device is a fixed part of a GPU
  // What an agent announces that another scheduler may speak to:
  std::int64_t partitioned = 0;  // of the devices, those that stand for GPUs in `mig`
  bool served_by_other = false;  // the others are another scheduler's to give,
  bool shared_by_other = false;  // to several users each
  std::int64_t registered = 0;   // GPUs that an agent hands out beside the device plugin
  std::string model = {};        // of all of them
  std::optional<SharedGpus> shared = std::nullopt;  // of the first agent that has some
  // Where the numbers stand for whole GPUs: the agent that hands them out too, in parts as well, to
  // all pods that are bound there.
  std::string agent_beside;
  std::string part_agent, agent_lacks;  // NodeSpec, like the next one
  bool part_agent_ready = false;
  // What the node's own agent says (server/wire/node/agent_annotations.h): the resources whose
  // devices containers get as Berth chose them, and the kubelet's policy.
  std::vector<std::string> carried_out;
  TopologyManager topology_manager;
  std::vector<GpuKind> kinds = {};  // where the GPUs differ, by the same agent
  // The outcome.
  int gpus = 0;  // whole ones
  GpuPlaces places;
  std::vector<DeviceCount> others;                     // NodeSpec::other_gpus
  int missing = 0;                                     // of either
  std::string resource;                                // "" without any
  std::string contradiction;                           // GpuInventory
  std::optional<AnnouncedUuids> uuids = std::nullopt;  // of the whole ones
  std::string problem;                                 // what was passed over; empty = nothing
  void AddProblem(std::string_view text) { AddFact(problem, text); }
};

struct AnnouncedLinks {
  std::string_view annotation;  // where they were read
  Result<LinkMatrix> matrix;
  std::vector<std::string> uuids;  // by index; empty = not said
};

struct MigDraft {
  std::int64_t gpus = 0;              // whole ones
  std::int64_t places = 0;            // on GPUs with several users
  std::int64_t gpu_memory_mib = 0;    // of each; 0 = not known
  std::vector<MigStock> allocatable;  // devices by name
  std::optional<MigSpec> spec;        // the outcome; nothing where no GPU is partitioned
  std::string problem;                // what was passed over, with its key; empty = nothing
  void AddProblem(std::string_view text) { AddFact(problem, text); }
};

// What one dialect reads of one node, while that is decoded.
class NodeReading {
 public:
  virtual ~NodeReading() = default;
  virtual void CountGpus(GpuDraft&) {}
  virtual std::optional<AnnouncedLinks> Links() { return std::nullopt; }
  virtual void AddMig(MigDraft&) {}
  // Whether the node has the dialect's agent, and does not only look as if.
  [[nodiscard]] virtual bool has_agent() const { return true; }
};

using NodeReadings = std::vector<std::unique_ptr<NodeReading>>;  // in order of precedence

// --- Pods

// The group that a pod belongs to. Errors: kInvalidArgument naming the key.
struct GroupAsk {
  Gang gang;              // empty = it stands alone
  Status sizes = {};      // of the gang
  std::string role = {};  // as in PodRequest, like leads
  bool leads = false;
  Result<DomainAsk> domain = DomainAsk{};
};

// Immutable: any thread may call it.
class Dialect {
 public:
  virtual ~Dialect() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;  // "berth"
  [[nodiscard]] virtual DialectKeys keys() const { return {}; }

  // nullptr: the node says nothing in this dialect.
  [[nodiscard]] virtual std::unique_ptr<NodeReading> ReadNode(const NodeFacts&) const {
    return nullptr;
  }

  // Adds so much of one of its resources. Error: kInvalidArgument.
  [[nodiscard]] virtual Status AddAsk(std::string_view, std::int64_t, ResourceAsk&) const {
    return {};
  }
  // Adds what the containers ask for by annotations. Error: kInvalidArgument.
  [[nodiscard]] virtual Status AddAnnotated(PodParts&) const { return {}; }
  // Makes shares of GPUs of what the containers ask for in its words. Error: kInvalidArgument.
  [[nodiscard]] virtual Status FindShares(PodParts&) const { return {}; }
  // Reads the pod's annotations. need: what each of its devices has to be at least, unless an
  // earlier dialect has said that. Error: kInvalidArgument with what is wrong.
  [[nodiscard]] virtual Status FinishAsk(const PodParts&, PodRequest&, MigWant&) const {
    return {};
  }
  virtual void ReadGroup(const PodParts&, const TopologyLevels&, GroupAsk&) const {}

  // Puts an object that says how many pods start together, a PodGroup or one of a controller that
  // makes them, into the groups; files have such. False: it reads none of that kind and API.
  // problem: what of it cannot be read. Error: kInvalidArgument with the field.
  [[nodiscard]] virtual Result<bool> TakeGroup(std::string_view /*api_version*/,
                                               std::string_view /*kind*/, const PaddedText&,
                                               const PodRules&, PodGroups&,
                                               std::string& /*problem*/) const {
    return false;
  }

  // Reads the value of one of keys().grants into the placement (recorded_devices.h). asked: the
  // containers, as they ask before FindShares. Error: kInvalidArgument with what is wrong, also
  // where it is not what the pod asks for; the placement is as it was then.
  [[nodiscard]] virtual Status ReadGrants(std::string_view /*key*/, const std::string& /*value*/,
                                          const PodParts& /*asked*/, ObservedPod&) const {
    return {};
  }
  // Adds the annotations by which the node's agent hears of the placement. Requires: the node has
  // its devices (CheckDevices).
  virtual void WriteGrants(const PodRequest&, const Placement&, const NodeSpec&, WallTime,
                           Annotations&) const {}
};

// All of them, in order of precedence.
class Dialects {
 public:
  explicit Dialects(std::vector<std::unique_ptr<const Dialect>> in_order);

  class Iterator {
   public:
    explicit Iterator(const std::unique_ptr<const Dialect>* at) : at_(at) {}
    const Dialect& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::unique_ptr<const Dialect>* at_;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(dialects_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(dialects_.data() + dialects_.size()); }

  [[nodiscard]] bool ReadsNode(std::string_view annotation) const {
    return of_nodes_.Find(annotation) != nullptr;
  }
  [[nodiscard]] bool ReadsCondition(std::string_view type) const {
    return conditions_.Find(type) != nullptr;
  }
  [[nodiscard]] bool ReadsPod(std::string_view annotation) const {
    return of_pods_.Find(annotation) != nullptr;
  }
  // Whether it is one by which a bound pod has its devices.
  [[nodiscard]] bool IsRecord(std::string_view annotation) const {
    return records_.Find(annotation) != nullptr;
  }
  [[nodiscard]] bool ReadsNodeResource(std::string_view resource) const {
    return of_node_resources_.Find(resource) != nullptr;
  }
  // nullptr: no dialect reads it.
  [[nodiscard]] const Dialect* ReaderOfResource(std::string_view resource) const {
    return resources_.Find(resource);
  }

 private:
  class Keys {
   public:
    void Add(std::span<const std::string_view> keys, const Dialect& dialect);
    [[nodiscard]] const Dialect* Find(std::string_view key) const;

   private:
    std::map<std::string, const Dialect*, std::less<>> whole_;
    std::vector<std::pair<std::string, const Dialect*>> beginnings_;
  };

  std::vector<std::unique_ptr<const Dialect>> dialects_;
  Keys of_nodes_, conditions_, of_pods_, records_, resources_, of_node_resources_;
};

// --- Names

// GpuWords: the resource names by which pods ask for GPUs and nodes say how many they have: those
// of the configuration, and for the names that it does not have those of the catalogue of vendors
// (topology/gpu_vendor.h) and Berth's own.

struct GpuWord {
  // The other resource that it counts as, whose devices these are; empty: none but itself.
  std::string_view same_as = {};
  ResourceMeaning meaning = ResourceMeaning::kWholeGpus;  // never kIgnored
  std::int64_t factor = 1;                                // UnitFactor
  GpuRank rank = GpuRank::kPart;                          // of whole GPUs

  // The resource that asks by this name are counted as.
  [[nodiscard]] std::string_view CountedAs(std::string_view name) const {
    return same_as.empty() ? name : same_as;
  }
};

class GpuWords {
 public:
  explicit GpuWords(const std::vector<ResourceRule>& configured);

  // Nothing for a name that has nothing to do with GPUs, or is to be ignored.
  [[nodiscard]] std::optional<GpuWord> Find(std::string_view resource) const;
  // Whether the configuration says to ignore it, even if others read it.
  [[nodiscard]] bool IsIgnored(std::string_view resource) const {
    const auto found = configured_.find(resource);
    return found != configured_.end() && found->second.meaning == ResourceMeaning::kIgnored;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Rows = std::unordered_map<std::string, GpuWord, Hash, std::equal_to<>>;

  Rows configured_, known_;
};

// Picks the resource of a node to count: resources with a healthy GPU first,
// then by rank, then that with the most healthy GPUs, then the first by name. nullptr without any.
const DeviceCount* CountedOf(const std::vector<DeviceCount>& devices);

// Whether the devices of the resource are RDMA devices, beside which GPUs are wanted.
bool IsRdma(std::string_view resource);

}  // namespace berth::wire
