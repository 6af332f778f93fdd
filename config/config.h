// SPDX-License-Identifier: Apache-2.0
//
// Config: everything an operator can set, with its default. Plain values; describe.h has their
// keys, ranges and meanings, load.h reads them from YAML (kind BerthConfiguration, apiVersion
// berth.dev/v1alpha1).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "topology/domains/domain_tree.h"
#include "topology/machine_types.h"

namespace berth {

// The meaning of a resource name in a container's requests.
enum class ResourceMeaning {
  kWholeGpus,     // number of GPUs
  kShareCompute,  // part of one GPU's compute
  kShareMemory,   // part of one GPU's memory
  kIgnored,       // not managed by Berth, even if the catalogue knows the name
};

struct ResourceRule {
  std::string name;  // "nvidia.com/gpu"
  ResourceMeaning meaning = ResourceMeaning::kWholeGpus;
  // The unit of the amounts: kWholeGpus and kIgnored "gpu"; kShareCompute "milli" or "percent" of a
  // GPU; kShareMemory "bytes", "MiB" or "GiB".
  std::string unit = "gpu";
  friend bool operator==(const ResourceRule&, const ResourceRule&) = default;
};

// Node labels in which GPU facts are published.
struct NodeLabelKeys {
  std::string gpu_model = "nvidia.com/gpu.product";
  std::string gpu_memory_mib = "nvidia.com/gpu.memory";
  std::string price_per_hour = "berth.dev/price-per-hour";  // of the node, in any currency
  friend bool operator==(const NodeLabelKeys&, const NodeLabelKeys&) = default;
};

struct TlsConfig {
  std::string certificate_file;  // PEM; empty = plain HTTP
  std::string key_file;
  std::string client_ca_file;  // PEM; empty = clients need no certificate
  friend bool operator==(const TlsConfig&, const TlsConfig&) = default;
};

struct ServerConfig {
  std::string listen = "0.0.0.0:8888";
  // The address of /debug and the live page: "" = same as `listen`, "off", or HOST:PORT.
  std::string debug_listen;
  int threads = 2;
  std::int64_t max_body_bytes = 128 << 20;  // a larger request gets 413
  int drain_seconds = 5;                    // how long idle connections are kept after SIGTERM
  TlsConfig tls;
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

// Which of several replicas binds: the holder of the Lease of this name.
struct LeaderElectionConfig {
  bool enabled = true;
  std::string namespace_name;  // of the Lease; empty = the pod's, or "default" outside a pod
  std::string name = "berth";  // of the Lease
  int lease_seconds = 15;      // without a renewal, until another replica becomes the leader
  friend bool operator==(const LeaderElectionConfig&, const LeaderElectionConfig&) = default;
};

// Pods that get GPUs by ResourceClaims.
struct DraConfig {
  // Whether Berth chooses the MIG device of a claim and allocates it (docs/dra-details.md). Needs
  // rights beyond those of the base manifests.
  bool choose_devices = false;
  // Whether Berth evicts pods for others of higher priority that wait for GPUs of DRA
  // (docs/dra.md). Needs the right to evict.
  bool preempt = false;
  friend bool operator==(const DraConfig&, const DraConfig&) = default;
};

// Nodes whose GPUs HAMi's device plugin shares or partitions.
struct HamiConfig {
  // Whether Berth assigns these devices to pods instead of HAMi's scheduler (docs/hami.md). Needs
  // rights beyond those of the base manifests.
  bool give_devices = false;
  friend bool operator==(const HamiConfig&, const HamiConfig&) = default;
};

// Nodes whose GPUs gpushare's device plugin hands out by memory.
enum class MemoryUnit { kGib, kMib };
struct GpushareConfig {
  MemoryUnit memory_unit = MemoryUnit::kGib;  // of aliyun.com/gpu-mem: its option --memory-unit
  friend bool operator==(const GpushareConfig&, const GpushareConfig&) = default;
};

// GPU shares (docs/share-a-gpu.md) on nodes without an agent that enforces them.
enum class UnenforcedShares { kAllow, kRefuse };
enum class SeveralReplicas { kAuto, kAllow, kRefuse };  // to one container; kAuto: by its node
struct SharesConfig {
  UnenforcedShares unenforced = UnenforcedShares::kRefuse;
  SeveralReplicas several_replicas = SeveralReplicas::kAuto;
  friend bool operator==(const SharesConfig&, const SharesConfig&) = default;
};

// A condition of a node, and the status in which it counts.
struct ConditionRule {
  std::string type;
  std::string status;  // True, False, Unknown
};
// "TYPE" (True) or "TYPE=STATUS". Error: kInvalidArgument with what was wanted.
Result<ConditionRule> ParseConditionRule(std::string_view text);

// Nodes with GPUs.
struct GpuNodesConfig {
  NodeGuard guard = NodeGuard::kScore;  // against pods without GPU requests
  // Node conditions that close a node to GPU pods (ParseConditionRule).
  std::vector<std::string> conditions;
  friend bool operator==(const GpuNodesConfig&, const GpuNodesConfig&) = default;
};

// Room that is kept for pods and gangs that wait.
struct EarmarksConfig {
  bool keep = true;
  int most_gpus_percent = 25;     // of all GPUs; one waiting pod alone may have more
  int gang_minutes = 15;          // for a gang; 0: nothing is
  int reserve_after_minutes = 1;  // that a large pod has waited; 0: no node is reserved
  int reserve_idle_minutes = 60;  // that GPUs stand idle for it, for each GPU that it asks for
  int reserve_within_minutes = 360;
  friend bool operator==(const EarmarksConfig&, const EarmarksConfig&) = default;
};

// Room for pods and gangs that wait, made by moves of running pods (docs/make-room.md).
enum class MakeRoomMode {
  kOff,
  kAdvise,  // an Event on the pod that waits
  kAct,     // Berth evicts the pods; needs rights beyond those of the base manifests
};
struct MakeRoomConfig {
  MakeRoomMode mode = MakeRoomMode::kOff;
  int after_minutes = 30;                    // that a pod or gang has waited
  int most_moves = 8;                        // of one plan
  int moves_per_hour = 12;                   // of all plans
  int moves_per_namespace = 4;               // an hour, of its pods
  int moves_per_node = 4;                    // an hour, away from it
  std::vector<std::string> namespaces = {};  // whose pods may be moved; empty: all
  int idle_nodes = 0;                        // GPU nodes that are to be wholly idle
  std::string idle_model = {};               // of these; empty: any
  bool keep_model = true;                    // moved pods stay on the GPU model that they have
  friend bool operator==(const MakeRoomConfig&, const MakeRoomConfig&) = default;
};

// High-cardinality metrics, off by default.
struct MetricsConfig {
  bool by_namespace = false;
  bool by_gpu = false;
  friend bool operator==(const MetricsConfig&, const MetricsConfig&) = default;
};

// Gangs: groups of pods that start together or not at all.
struct GangsConfig {
  std::vector<std::string> conventions;       // whose groups are gangs; others are only kept close
  std::vector<std::string> controllers = {};  // whose pods are gangs without an annotation
  int hold_seconds = 50;                      // how long a bind waits for the others
  bool may_break = false;                     // by evictions that kube-scheduler chooses
  friend bool operator==(const GangsConfig&, const GangsConfig&) = default;
};

// A custom feature of nodes (NodeSpec::traits), in addition to the built-in ones.
struct TraitConfig {
  std::string name;
  std::vector<std::string> labels;  // that its nodes have (ParseSelector), all of them
  std::string resource;             // that they offer; empty: any
  friend bool operator==(const TraitConfig&, const TraitConfig&) = default;
};

// A preference for a trait or for kPriceWish. The weight is the idle GPU capacity that it may cost,
// in percent of the pod's GPUs (TraitWish).
struct WishConfig {
  std::string trait;
  int weight = 100;  // 1..kMaxWishWeight
  friend bool operator==(const WishConfig&, const WishConfig&) = default;
};
constexpr int kMaxWishWeight = 1000;

// A kind of GPU pods and the nodes that they need. A pod matches if it is in one of the namespaces,
// has all of the labels and one of the PriorityClasses; an empty list matches every pod. A pod may
// also name its class by annotation.
struct WorkloadClass {
  std::string name;
  std::vector<std::string> namespaces;
  std::vector<std::string> labels;  // ParseSelector
  std::vector<std::string> priority_classes;
  std::vector<WishConfig> prefer;
  std::vector<WishConfig> avoid;
  std::vector<std::string> require;
  std::vector<std::string> forbid;
  Spread spread = Spread::kNone;  // of pods without the annotation
  std::string profile;            // profile for its pods; empty: Config::profile
  friend bool operator==(const WorkloadClass&, const WorkloadClass&) = default;
};

constexpr std::size_t kLongestClusterName = 63;

struct Config {
  std::string profile = "expected-waste";  // a built-in one or one of `profiles`
  std::vector<ProfileSpec> profiles;       // user-defined; a name may override a built-in one
  // In addition to the known vendors' names (topology/gpu_vendor.h) and Berth's own. An entry of
  // the same name overrides these.
  std::vector<ResourceRule> resources;
  NodeLabelKeys node_labels;
  std::vector<MachineTypeSpec> machine_types;  // override fields of the catalogue's types
  TopologyLevels topology_levels;  // which nodes are close to each other; empty: ignored
  GangsConfig gangs;
  DraConfig dra;
  HamiConfig hami;
  GpushareConfig gpushare;
  SharesConfig shares;
  GpuNodesConfig gpu_nodes;
  EarmarksConfig earmarks;
  MakeRoomConfig make_room;
  std::vector<TraitConfig> traits;
  std::vector<WorkloadClass> workload_classes;  // a pod belongs to the first that it matches
  MetricsConfig metrics;
  ServerConfig server;
  LeaderElectionConfig leader_election;
  // How long a bind may take before Berth asks the API server for its outcome.
  int reservation_seconds = 30;
  // Maximum number of fitting nodes that kube-scheduler scores for a GPU pod; 0: all.
  int nodes_to_score = 100;
  std::string log_level = "info";  // debug, info, warn, error
  std::string cluster_name;        // for people; at most kLongestClusterName characters, one line
  friend bool operator==(const Config&, const Config&) = default;
};

Config DefaultConfig();

// The resource names berth.dev/... for GPU shares.
std::vector<ResourceRule> BerthsOwnResources();

// Checks across fields: names that must exist, pairs that belong together. Error: kInvalidArgument
// with the path of the field.
Status Validate(const Config& config);

// One of `profiles`, else a built-in one; nullptr if no profile has that name.
const ProfileSpec* FindProfile(const Config& config, std::string_view name);

// The other profiles that classes name, each once. A profile that does not exist is left out,
// because a reload may remove a profile before the classes change.
std::vector<ProfileSpec> ClassProfiles(const Config& config);

// The profile that the configuration chooses. Requires: Validate(config).
const ProfileSpec& ChosenProfile(const Config& config);

// The size of one unit of the rule's resource, in GPUs, thousandths of a GPU or bytes of GPU
// memory. 0 for a unit that does not belong to the meaning.
std::int64_t UnitFactor(const ResourceRule& rule);

// The names of enumerators in the configuration, in the order of the enumerators.

inline constexpr std::array<std::string_view, 4> kMeaningWords = {"whole-gpus", "share-compute",
                                                                  "share-memory", "ignored"};
inline constexpr std::array<std::string_view, 4> kDeviceRuleWords = {"first", "tightest",
                                                                     "best-score", "random"};
inline constexpr std::array<std::string_view, 3> kTieRuleWords = {"equal", "first", "fullest"};
inline constexpr std::array<std::string_view, 2> kUnenforcedWords = {"allow", "refuse"};
inline constexpr std::array<std::string_view, 3> kSeveralWords = {"auto", "allow", "refuse"};
inline constexpr std::array<std::string_view, 3> kMakeRoomWords = {"off", "advise", "act"};
inline constexpr std::array<std::string_view, 3> kNodeGuardWords = {"off", "score", "refuse"};
inline constexpr std::array<std::string_view, 3> kSpreadWords = {"none", "card", "node"};
inline constexpr std::array<std::string_view, 2> kMemoryUnitWords = {"GiB", "MiB"};
inline constexpr std::array<std::string_view, 4> kLogLevelWords = {"debug", "info", "warn",
                                                                   "error"};
// Conventions by which pods name their group (docs/gangs.md).
inline constexpr std::array<std::string_view, 9> kGangConventionWords = {
    "berth",  "coscheduling", "kubernetes", "volcano", "koordinator",
    "labels", "kueue",        "kai",        "grove"};

// Controllers whose pods can be gangs without an annotation (docs/with-controllers.md).
inline constexpr std::array<std::string_view, 3> kGangControllerWords = {"jobset", "lws", "job"};

template <class Words, class Enum>
constexpr std::string_view WordOf(const Words& words, Enum value) {
  return words[static_cast<std::size_t>(value)];
}

// The configuration as YAML, with every setting: LoadConfig reads it back to an equal one.
std::string PrintConfig(Config config);

// A JSON Schema (draft-07) of a BerthConfiguration, for editors: the keys, forms, ranges, words,
// defaults and meanings of describe.h. It does not cover the checks across fields (ProblemsOf).
// docs/berth-configuration.schema.json is this text.
std::string ConfigSchema();

// Checks across settings that are each well formed: names that must exist, pairs that belong
// together, addresses. Validate returns the first problem.
// Each begins with the path of its field: "profiles[1].name: want a name, got \"\"".
std::vector<std::string> ProblemsOf(const Config& config);

// Settings that are allowed and may be a mistake, in the same form: a profile without scorers, one
// that overrides a built-in profile, one that is not used.
std::vector<std::string> NotesOn(const Config& config);

// Adds what the profile has from the built-in one that it extends: scorers that it neither names
// nor leaves out, behind its own, and the rules that it does not say. Doing it twice changes
// nothing. Nothing happens where it extends none, or one that does not exist.
void Extend(ProfileSpec& profile, bool says_devices, bool says_ties);

}  // namespace berth
