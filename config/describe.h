// SPDX-License-Identifier: Apache-2.0
//
// Describe(visitor, settings) names each setting of the configuration once, in the order of
// printing: its key, its value, the allowed values and the meaning. The
// reader (load.cc), the printer (print.cc) and the table of docs/configuration.md (reference.cc)
// are visitors. A new setting needs a member in config.h and a line here.
//
// A visitor has these members:
//
//   Field(key, value, form, meaning)   a value; `form` is one of the types below
//   Group(key, settings, meaning)      a mapping; calls Describe for its settings
//   List(key, elements, meaning)       a list of mappings; calls Describe for each element
//
// Visitors that only read visit a copy: Describe hands out references that can be written.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/config.h"

namespace berth {

struct AnyText {};
struct TextList {
  bool optional = false;  // not printed when it is empty
};
struct TrueOrFalse {};
struct Integers {
  std::int64_t low, high;
  bool optional = false;  // not printed when it is 0
};
struct Numbers {
  double low, high;
};
template <class Form>
struct Optional {  // a std::optional: no default, printed only if set
  Form form;
};
struct Words {  // names of enumerators, or the allowed texts
  std::span<const std::string_view> words;
};

template <class Visitor>
void Describe(Visitor& v, ScorerSpec& scorer) {
  v.Field("name", scorer.name, AnyText{}, "name of a scorer, or `domain-locality`");
  v.Field("weight", scorer.weight, Integers{1, kMaxScorerWeight},
          "weight of its score relative to the others");
}

template <class Visitor>
void Describe(Visitor& v, ProfileSpec& profile) {
  v.Field("name", profile.name, AnyText{},
          "name of the profile; the name of a built-in profile overrides that one");
  v.Field("extends", profile.extends, AnyText{},
          "built-in profile whose scorers, devices and ties it has where it names no others");
  v.List("scorers", profile.scorers, "weighted scorers; with none, all nodes score the same");
  v.Field("without", profile.without, TextList{true},
          "scorers of `extends` or of the default profile to leave out");
  v.Field("devices", profile.devices, Words{kDeviceRuleWords},
          "rule that picks the GPU of a node for a GPU share");
  v.Field("ties", profile.ties, Words{kTieRuleWords},
          "rule that picks among nodes with the same best score");
}

template <class Visitor>
void Describe(Visitor& v, ResourceRule& rule) {
  v.Field("name", rule.name, AnyText{}, "resource name in a container's requests");
  v.Field("meaning", rule.meaning, Words{kMeaningWords}, "what the resource stands for");
  v.Field("unit", rule.unit, AnyText{},
          "whole-gpus, ignored: `gpu`; share-compute: `milli` or `percent`; share-memory: `bytes`, "
          "`MiB` or `GiB`");
}

template <class Visitor>
void Describe(Visitor& v, NodeLabelKeys& keys) {
  v.Field("gpuModel", keys.gpu_model, AnyText{}, "node label with the GPU model");
  v.Field("gpuMemoryMib", keys.gpu_memory_mib, AnyText{},
          "node label with the memory of one GPU in MiB");
  v.Field("pricePerHour", keys.price_per_hour, AnyText{},
          "node label with the node's price per hour, in any currency");
}

template <class Visitor>
void Describe(Visitor& v, MachineTypeSpec& type) {
  v.Field("name", type.name, AnyText{},
          "machine type, as in the node label `node.kubernetes.io/instance-type`");
  v.Field("gpus", type.gpus, Optional<Integers>{{1, kMaxGpusPerNode}},
          "number of GPUs of the machine; required unless the catalogue knows the type");
  v.Field("model", type.gpu_model, Optional<AnyText>{},
          "model of its GPUs, as the vendor's agent publishes it");
  v.Field("memoryMib", type.gpu_memory_mib, Optional<Integers>{{1, std::int64_t{1} << 40}},
          "memory of each GPU (or part of a card), as the driver reports it");
  v.Field("parts", type.gpu_parts, Optional<Integers>{{1, 64}},
          "n if each GPU of the machine is one n-th of a physical card");
  v.Field("rdma", type.rdma, Optional<TrueOrFalse>{},
          "whether the machine has RDMA NICs for its GPUs");
  v.Field("nvmeGib", type.nvme_gib, Optional<Integers>{{0, std::int64_t{1} << 40}},
          "size of the local NVMe disks that every such machine has");
  v.Field("pricePerHour", type.price_per_hour, Optional<Numbers>{{0, 1e9}},
          "price of the machine per hour, in any currency; 0: unknown");
}

// As printed. The reader accepts more forms (ReadTopologyLevel in load.cc).
template <class Visitor>
void Describe(Visitor& v, TopologyLevel& level) {
  v.Field("name", level.name, AnyText{},
          "name that pods use for the level; default: its first label");
  v.Field("labels", level.labels, TextList{},
          "node labels of the level; the first one that a node has is used");
}

// The mapping `topology`.
struct TopologyConfig {
  TopologyLevels& levels;
};

template <class Visitor>
void Describe(Visitor& v, TopologyConfig& topology) {
  v.List("levels", topology.levels,
         "levels, widest first; an entry has `labels`, one `nodeLabel`, or a `preset` of several "
         "levels");
}

template <class Visitor>
void Describe(Visitor& v, DraConfig& dra) {
  v.Field("chooseDevices", dra.choose_devices, TrueOrFalse{},
          "whether Berth chooses and allocates the devices of ResourceClaims");
  v.Field("preempt", dra.preempt, TrueOrFalse{},
          "whether Berth evicts pods of lower priority for pods that wait for GPUs of DRA");
}

template <class Visitor>
void Describe(Visitor& v, HamiConfig& hami) {
  v.Field("giveDevices", hami.give_devices, TrueOrFalse{},
          "whether Berth assigns the devices of HAMi's agent instead of HAMi's scheduler");
}

template <class Visitor>
void Describe(Visitor& v, GpushareConfig& gpushare) {
  v.Field("memoryUnit", gpushare.memory_unit, Words{kMemoryUnitWords},
          "unit of `aliyun.com/gpu-mem`: the device plugin's `--memory-unit`");
}

template <class Visitor>
void Describe(Visitor& v, SharesConfig& shares) {
  v.Field("unenforced", shares.unenforced, Words{kUnenforcedWords},
          "whether GPU shares may go to nodes where no agent enforces them");
  v.Field("severalReplicas", shares.several_replicas, Words{kSeveralWords},
          "whether a container may get several replicas of shared GPUs, which may all be of one "
          "GPU; `auto`: where the node says time slicing, which NVIDIA's plugin serves by default; "
          "never with MPS or on GKE, whose plugins reject it");
}

template <class Visitor>
void Describe(Visitor& v, GpuNodesConfig& nodes) {
  v.Field("guard", nodes.guard, Words{kNodeGuardWords},
          "how to keep pods without GPU requests off GPU nodes: not at all, by score, or by "
          "refusal (except DaemonSets and system pods)");
  v.Field("conditions", nodes.conditions, TextList{},
          "node conditions that close a node, or the GPUs they name by UUID, to GPU pods: `TYPE` "
          "(status True) or `TYPE=STATUS`");
}

template <class Visitor>
void Describe(Visitor& v, EarmarksConfig& earmarks) {
  v.Field("keep", earmarks.keep, TrueOrFalse{},
          "keep room that becomes free for the pods that have waited longest, until they come");
  v.Field("mostGpusPercent", earmarks.most_gpus_percent, Integers{0, 100},
          "how many of all GPUs are kept at most, in percent; the first waiting pod alone may have "
          "more");
  v.Field("gangMinutes", earmarks.gang_minutes, Integers{0, 1440},
          "how long nodes are kept for a gang while it gathers them; then others go first for as "
          "long; 0: not at all");
  v.Field(
      "reserveAfterMinutes", earmarks.reserve_after_minutes, Integers{0, 1440},
      "how long a pod of two or more whole GPUs has waited before a node is reserved for it, by "
      "when the pods there end; 0: none is");
  v.Field("reserveIdleMinutes", earmarks.reserve_idle_minutes, Integers{0, 10'080},
          "how long GPUs may stand idle on a node that is reserved for a pod, in minutes for each "
          "GPU that it asks for; a node where they would longer is not reserved");
  v.Field("reserveWithinMinutes", earmarks.reserve_within_minutes, Integers{0, 10'080},
          "how soon a node has to have room to be reserved");
}

template <class Visitor>
void Describe(Visitor& v, MakeRoomConfig& room) {
  v.Field("mode", room.mode, Words{kMakeRoomWords},
          "off; advise: an Event says which moves would let a waiting pod in; act: Berth evicts "
          "pods, one after the other");
  v.Field("afterMinutes", room.after_minutes, Integers{0, 10'080},
          "how long a pod or gang has to have waited, and a leader to have led");
  v.Field("mostMoves", room.most_moves, Integers{1, 32}, "maximum number of moves of one plan");
  v.Field("movesPerHour", room.moves_per_hour, Integers{1, 1000},
          "maximum number of moves in an hour");
  v.Field("movesPerNamespace", room.moves_per_namespace, Integers{1, 1000},
          "maximum number of moves in an hour of pods of one namespace");
  v.Field("movesPerNode", room.moves_per_node, Integers{1, 1000},
          "maximum number of moves in an hour away from one node");
  v.Field("namespaces", room.namespaces, TextList{true},
          "namespaces whose pods may be moved; empty: all");
  v.Field("idleNodes", room.idle_nodes, Integers{0, 32},
          "GPU nodes to keep wholly idle: where there have been fewer for afterMinutes, pods of "
          "priority 0 and less move off others; 0: none");
  v.Field("idleModel", room.idle_model, AnyText{}, "GPU model of these nodes; empty: any");
  v.Field(
      "keepModel", room.keep_model, TrueOrFalse{},
      "pods with GPUs move only to nodes with the GPU model that they have; false: to any model "
      "that they accept");
}

template <class Visitor>
void Describe(Visitor& v, TraitConfig& trait) {
  v.Field("name", trait.name, AnyText{}, "name that workload classes use for the trait");
  v.Field("labels", trait.labels, TextList{true},
          "node labels that must all match: `KEY=VALUE`, `KEY!=VALUE`, `KEY` or `!KEY`");
  v.Field("resource", trait.resource, AnyText{}, "resource that the node must offer");
}

template <class Visitor>
void Describe(Visitor& v, WishConfig& wish) {
  v.Field("trait", wish.trait, AnyText{},
          "rdma, nvlink, nvswitch, nvme, spot, leaving, mig, shared, `family=F`, "
          "`image=V` or one of `traits`; in `prefer` also price");
  v.Field("weight", wish.weight, Integers{1, kMaxWishWeight},
          "how much idle GPU capacity the preference may cost, in % of the pod's GPUs; for price: "
          "per unit of money and GPU-hour");
}

template <class Visitor>
void Describe(Visitor& v, WorkloadClass& workload) {
  v.Field("name", workload.name, AnyText{},
          "name of the class; pods can select it with the annotation `berth.dev/workload-class`");
  v.Field("namespaces", workload.namespaces, TextList{true}, "namespaces of its pods");
  v.Field("labels", workload.labels, TextList{true},
          "labels of its pods, which must all match; same form as the labels of `traits`");
  v.Field("priorityClasses", workload.priority_classes, TextList{true},
          "PriorityClasses of its pods");
  v.List("prefer", workload.prefer, "traits of nodes to prefer");
  v.List("avoid", workload.avoid, "traits of nodes to avoid if possible");
  v.Field("require", workload.require, TextList{true}, "traits that a node must have");
  v.Field("forbid", workload.forbid, TextList{true}, "traits that a node must not have");
  v.Field("spread", workload.spread, Words{kSpreadWords},
          "what pods of one controller must not share: nothing, a card or a node; a pod's "
          "annotation overrides it");
  v.Field("profile", workload.profile, AnyText{},
          "profile for its pods: a built-in one or one of `profiles`; empty: `profile`");
}

template <class Visitor>
void Describe(Visitor& v, MetricsConfig& metrics) {
  v.Field("byNamespace", metrics.by_namespace, TrueOrFalse{},
          "GPUs held and pods waiting; one series per namespace and model");
  v.Field("byGpu", metrics.by_gpu, TrueOrFalse{},
          "allocated fraction of each GPU; one series per GPU with a known UUID");
}

template <class Visitor>
void Describe(Visitor& v, GangsConfig& gangs) {
  v.Field("conventions", gangs.conventions, TextList{},
          "gang conventions to schedule all-or-nothing; pods of other groups are only placed close "
          "together");
  v.Field(
      "controllers", gangs.controllers, TextList{},
      "controllers whose GPU pods start together without any annotation: `jobset`, `lws`, `job`");
  v.Field("holdSeconds", gangs.hold_seconds, Integers{5, 3600},
          "how long a bind waits for the other pods of its group; must be below kube-scheduler's "
          "`httpTimeout` for bind");
  v.Field("mayBreak", gangs.may_break, TrueOrFalse{},
          "where no other node will do, kube-scheduler may evict single members of a gang of lower "
          "priority, so that fewer are left than have to start together");
}

template <class Visitor>
void Describe(Visitor& v, TlsConfig& tls) {
  v.Field("certificateFile", tls.certificate_file, AnyText{},
          "PEM file with the server certificate; empty: plain HTTP");
  v.Field("keyFile", tls.key_file, AnyText{}, "PEM file with the private key");
  v.Field("clientCaFile", tls.client_ca_file, AnyText{},
          "PEM file with the CA of client certificates; empty: clients need no certificate");
}

template <class Visitor>
void Describe(Visitor& v, ServerConfig& server) {
  v.Field("listen", server.listen, AnyText{}, "HOST:PORT of the extender");
  v.Field("debugListen", server.debug_listen, AnyText{},
          "HOST:PORT of `/debug` and the live page; empty: same as `listen`; `off`: disabled");
  v.Field("threads", server.threads, Integers{1, 64}, "threads that serve connections");
  v.Field("maxBodyBytes", server.max_body_bytes, Integers{1 << 10, std::int64_t{4} << 30},
          "maximum size of a request body; larger requests get status 413");
  v.Field("drainSeconds", server.drain_seconds, Integers{0, 3600},
          "how long idle connections are kept after SIGTERM");
  v.Group("tls", server.tls, "");
}

template <class Visitor>
void Describe(Visitor& v, LeaderElectionConfig& election) {
  v.Field("enabled", election.enabled, TrueOrFalse{},
          "whether only the leader (holder of a Lease) binds pods");
  v.Field("namespace", election.namespace_name, AnyText{},
          "namespace of the Lease; empty: that of Berth's pod, or `default` outside a pod");
  v.Field("name", election.name, AnyText{}, "name of the Lease");
  v.Field("leaseSeconds", election.lease_seconds, Integers{5, 300},
          "time without a renewal after which another replica becomes the leader");
}

template <class Visitor>
void Describe(Visitor& v, Config& config) {
  v.Field("profile", config.profile, AnyText{},
          "profile that scores nodes: a built-in one or one of `profiles`");
  v.List("profiles", config.profiles, "custom profiles");
  v.List("resources", config.resources,
         "GPU resource names of pods, in addition to those of the known vendors");
  v.Group("nodeLabels", config.node_labels, "node labels with facts about the node's GPUs");
  v.List("machineTypes", config.machine_types,
         "custom machine types and overrides; omitted fields keep the catalogue's value");
  TopologyConfig topology{config.topology_levels};
  v.Group("topology", topology, "which nodes are close to each other");
  v.Group("gangs", config.gangs, "gangs: groups of pods that start together or not at all");
  v.Group("dra", config.dra, "Dynamic Resource Allocation");
  v.Group("hami", config.hami, "HAMi");
  v.Group("gpushare", config.gpushare, "gpushare");
  v.Group("shares", config.shares, "GPU shares");
  v.Group("gpuNodes", config.gpu_nodes, "nodes with GPUs");
  v.Group("earmarks", config.earmarks, "room that is kept for pods and gangs that wait");
  v.Group("makeRoom", config.make_room,
          "room for pods and gangs that wait, made by moves of running pods");
  v.List("traits", config.traits,
         "custom traits (features) of nodes, in addition to the built-in ones");
  v.List(
      "workloadClasses", config.workload_classes,
      "kinds of pods and the nodes that they need; a pod belongs to the first class that matches");
  v.Group("metrics", config.metrics, "high-cardinality metrics (off by default)");
  v.Group("server", config.server, "");
  v.Group("leaderElection", config.leader_election, "");
  v.Field("reservationSeconds", config.reservation_seconds, Integers{1, 3600},
          "how long a bind may take before Berth asks the API server for its outcome");
  v.Field("nodesToScore", config.nodes_to_score, Integers{0, 1'000'000},
          "maximum number of fitting nodes that kube-scheduler scores for a GPU pod; 0: all");
  v.Field("logLevel", config.log_level, Words{kLogLevelWords}, "least severe level that is logged");
  v.Field("clusterName", config.cluster_name, AnyText{},
          "name of the cluster in the title of the live page, at most 63 characters; empty: none");
}

}  // namespace berth
