// SPDX-License-Identifier: Apache-2.0
//
// Describe(visitor, settings): every setting of the configuration, once - its key, where its value
// is, what the value may be, and its meaning - in the order in which settings are printed. The
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
#include "config/words.h"

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
struct NumbersAboveZero {};
struct MilliQuantities {};  // Kubernetes quantities, held in thousandths
template <class Form>
struct Optional {  // of a std::optional: no default, not printed unless it is said
  Form form;
};
struct Words {  // of an enumerator or, where the value is a text, of itself
  std::span<const std::string_view> words;
};

template <class Visitor>
void Describe(Visitor& v, ScorerSpec& scorer) {
  v.Field("name", scorer.name, AnyText{}, "a scorer, or `domain-locality`");
  v.Field("weight", scorer.weight, Integers{1, kMaxScorerWeight},
          "how much its score counts beside the others");
}

template <class Visitor>
void Describe(Visitor& v, ProfileSpec& profile) {
  v.Field("name", profile.name, AnyText{}, "may be that of a built-in profile, which it overrides");
  v.List("scorers", profile.scorers, "without any, every node scores the same");
  v.Field("devices", profile.devices, Words{kDeviceRuleWords},
          "which GPU of a node a share of a GPU gets");
  v.Field("ties", profile.ties, Words{kTieRuleWords},
          "which of several nodes with the best score wins");
}

template <class Visitor>
void Describe(Visitor& v, MixEntry& entry) {
  v.Field("cpu", entry.cpu_milli, MilliQuantities{}, "CPU that such a pod requests");
  v.Field("gpus", entry.gpus, Integers{0, kMaxGpusPerNode, true}, "whole GPUs that it requests");
  v.Field("gpuMilli", entry.gpu_milli, Integers{0, kMilliPerGpu, true},
          "or a share of one GPU, in thousandths");
  v.Field("models", entry.models, TextList{true}, "GPU models that it accepts; empty: every model");
  v.Field("weight", entry.weight, NumbersAboveZero{},
          "how frequent such pods are; the scale does not matter");
}

template <class Visitor>
void Describe(Visitor& v, LearningParameters& learning) {
  v.Field("halfLifePods", learning.half_life_pods, Integers{1, 1'000'000'000},
          "after so many pods an observed pod counts half");
  v.Field("longestEpochPods", learning.longest_epoch_pods, Integers{1, 1'000'000'000},
          "the scorers are rebuilt at the latest after so many pods");
}

template <class Visitor>
void Describe(Visitor& v, WasteParameters& waste) {
  v.Field("fills", waste.fills, Integers{1, 256},
          "simulated fillings of a node whose mean is its score; time grows with the number");
  v.Field("patience", waste.patience, Integers{1, 400},
          "a filling ends after so many GPU pods in a row that do not fit");
  v.Field("settledPatience", waste.settled_patience, Integers{1, 400},
          "`patience` in a cluster in which pods leave as fast as they arrive");
  v.Field("optimismGpus", waste.optimism, Numbers{0, 100},
          "a filling that wastes so many GPUs less counts e times as much; 0: all count the same");
  v.Field("coverage", waste.coverage, Numbers{0.01, 1},
          "the most frequent kinds of pods that make up this share of the mix are simulated");
  v.Field("fragmentation", waste.fragmentation, Numbers{0, 100},
          "weight of a GPU that the next pod cannot use, beside one that stays idle for good");
  v.Field("settledFragmentation", waste.settled_fragmentation, Numbers{0, 100},
          "`fragmentation` in a cluster in which pods leave as fast as they arrive");
  v.Field("scarcityExponent", waste.scarcity_exponent, Numbers{0.1, 20},
          "how steeply the price of room for several GPUs on one node rises");
  v.Field("scarcityLimitGpus", waste.scarcity_limit, Numbers{0, 100},
          "the highest price of one GPU of such room");
  v.Field("sharePriceGpus", waste.share_price, Numbers{0, 100},
          "price of room for a large share of a GPU when demand equals supply");
  v.Field("modelPriceGpus", waste.model_price, Numbers{0, 100},
          "price of a GPU of a model when the demand for the model equals what is free");
  v.Field("bestFitGpus", waste.best_fit, Numbers{0, 100},
          "what an empty largest node costs more than a full one");
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
          "node label with the price of the node in an hour, in any currency");
}

template <class Visitor>
void Describe(Visitor& v, MachineTypeSpec& type) {
  v.Field("name", type.name, AnyText{}, "as nodes have it in `node.kubernetes.io/instance-type`");
  v.Field("gpus", type.gpus, Optional<Integers>{{1, kMaxGpusPerNode}},
          "of the whole machine; needed unless the catalogue knows the type");
  v.Field("model", type.gpu_model, Optional<AnyText>{},
          "of its GPUs, as their vendor's agent publishes it");
  v.Field("memoryMib", type.gpu_memory_mib, Optional<Integers>{{1, std::int64_t{1} << 40}},
          "memory of each GPU, or of the part, as its driver reports it");
  v.Field("parts", type.gpu_parts, Optional<Integers>{{1, 64}},
          "n: one GPU of the machine is an n-th of a card");
  v.Field("rdma", type.rdma, Optional<TrueOrFalse>{}, "whether it has NICs for GPUs");
  v.Field("nvmeGib", type.nvme_gib, Optional<Integers>{{0, std::int64_t{1} << 40}},
          "local NVMe that it always has");
  v.Field("pricePerHour", type.price_per_hour, Optional<Numbers>{{0, 1e9}},
          "of the whole machine, in any currency; 0: not known");
}

// As printed. The reader accepts more forms (ReadTopologyLevel in load.cc).
template <class Visitor>
void Describe(Visitor& v, TopologyLevel& level) {
  v.Field("name", level.name, AnyText{}, "by which pods name the level; default: its first label");
  v.Field("labels", level.labels, TextList{}, "node labels; the first that a node has is used");
}

// The mapping `topology`.
struct TopologyConfig {
  TopologyLevels& levels;
};

template <class Visitor>
void Describe(Visitor& v, TopologyConfig& topology) {
  v.List("levels", topology.levels,
         "from wide to narrow. An entry has `labels`, or one `nodeLabel`, or a `preset`, which "
         "stands for several levels");
}

template <class Visitor>
void Describe(Visitor& v, DraConfig& dra) {
  v.Field("chooseDevices", dra.choose_devices, TrueOrFalse{},
          "Berth chooses the MIG device of a ResourceClaim and allocates it");
}

template <class Visitor>
void Describe(Visitor& v, HamiConfig& hami) {
  v.Field("giveDevices", hami.give_devices, TrueOrFalse{},
          "Berth assigns the devices of HAMi's agent, in place of HAMi's scheduler");
}

template <class Visitor>
void Describe(Visitor& v, GpushareConfig& gpushare) {
  v.Field("memoryUnit", gpushare.memory_unit, Words{kMemoryUnitWords},
          "of `aliyun.com/gpu-mem`, as the device plugin's `--memory-unit` says");
}

template <class Visitor>
void Describe(Visitor& v, SharesConfig& shares) {
  v.Field("unenforced", shares.unenforced, Words{kUnenforcedWords},
          "what becomes of shares on nodes where nobody carries them out");
}

template <class Visitor>
void Describe(Visitor& v, GpuNodesConfig& nodes) {
  v.Field("guard", nodes.guard, Words{kNodeGuardWords},
          "what keeps pods that ask for no GPU off nodes that have some: nothing, the score, or a "
          "refusal, but for DaemonSets and pods of the system");
  v.Field(
      "conditions", nodes.conditions, TextList{},
      "conditions by which a node gets no pods with GPUs, or none on the GPUs that they name by "
      "UUID: `TYPE` (its status is True) or `TYPE=STATUS`");
}

template <class Visitor>
void Describe(Visitor& v, TraitConfig& trait) {
  v.Field("name", trait.name, AnyText{}, "by which classes name it");
  v.Field("labels", trait.labels, TextList{true},
          "labels that nodes with the trait have, all of them: `KEY=VALUE`, `KEY!=VALUE`, `KEY` or "
          "`!KEY`");
  v.Field("resource", trait.resource, AnyText{}, "a resource of which they offer some");
}

template <class Visitor>
void Describe(Visitor& v, WishConfig& wish) {
  v.Field("trait", wish.trait, AnyText{},
          "rdma, nvlink, nvswitch, nvme, spot, leaving, mig, shared, `family=F`, one of `traits`; "
          "to prefer: "
          "price");
  v.Field(
      "weight", wish.weight, Integers{1, kMaxWishWeight},
      "percent of the GPUs that a pod takes: so much of them may rather stay idle; of price: for "
      "every unit of money that a GPU costs in an hour");
}

template <class Visitor>
void Describe(Visitor& v, WorkloadClass& workload) {
  v.Field("name", workload.name, AnyText{},
          "by which pods may name it in the annotation `berth.dev/workload-class`");
  v.Field("namespaces", workload.namespaces, TextList{true}, "of its pods: any of these");
  v.Field("labels", workload.labels, TextList{true}, "of its pods: all of these, as for traits");
  v.Field("priorityClasses", workload.priority_classes, TextList{true},
          "of its pods: any of these");
  v.List("prefer", workload.prefer, "traits of nodes that it rather has");
  v.List("avoid", workload.avoid, "traits of nodes that it rather has not");
  v.Field("require", workload.require, TextList{true},
          "traits without which a node is none for it");
  v.Field("forbid", workload.forbid, TextList{true}, "traits with which a node is none for it");
  v.Field("spread", workload.spread, Words{kSpreadWords},
          "what its pods of one controller keep off each other, unless they say so themselves");
  v.Field(
      "profile", workload.profile, AnyText{},
      "by which nodes are compared for its pods, built in or one of `profiles`; empty: `profile`");
}

template <class Visitor>
void Describe(Visitor& v, MetricsConfig& metrics) {
  v.Field("byNamespace", metrics.by_namespace, TrueOrFalse{},
          "GPUs held and pods waiting, a series for each namespace and model");
  v.Field("byGpu", metrics.by_gpu, TrueOrFalse{},
          "how much of each GPU is allocated, a series for each whose UUID is known");
}

template <class Visitor>
void Describe(Visitor& v, GangsConfig& gangs) {
  v.Field("conventions", gangs.conventions, TextList{},
          "in whose words groups of pods are named that start whole; other groups are kept near");
  v.Field("controllers", gangs.controllers, TextList{},
          "`jobset`, `lws`, `job`: pods with GPUs that these controllers make start together "
          "without any annotation");
  v.Field("holdSeconds", gangs.hold_seconds, Integers{5, 3600},
          "how long a bind waits for the other pods of its group; less than the `httpTimeout` of "
          "kube-scheduler's entry for bind");
}

template <class Visitor>
void Describe(Visitor& v, TlsConfig& tls) {
  v.Field("certificateFile", tls.certificate_file, AnyText{}, "PEM; empty: plain HTTP");
  v.Field("keyFile", tls.key_file, AnyText{}, "PEM");
  v.Field("clientCaFile", tls.client_ca_file, AnyText{}, "PEM; empty: clients need no certificate");
}

template <class Visitor>
void Describe(Visitor& v, ServerConfig& server) {
  v.Field("listen", server.listen, AnyText{}, "HOST:PORT of the extender");
  v.Field("debugListen", server.debug_listen, AnyText{},
          "HOST:PORT of `/debug` and the live page; empty: as `listen`; `off`: nowhere");
  v.Field("threads", server.threads, Integers{1, 64}, "threads that serve connections");
  v.Field("maxBodyBytes", server.max_body_bytes, Integers{1 << 10, std::int64_t{4} << 30},
          "a larger request is answered with 413");
  v.Field("drainSeconds", server.drain_seconds, Integers{0, 3600},
          "how long idle connections are kept after SIGTERM");
  v.Group("tls", server.tls, "");
}

template <class Visitor>
void Describe(Visitor& v, LeaderElectionConfig& election) {
  v.Field("enabled", election.enabled, TrueOrFalse{}, "only the holder of a Lease binds");
  v.Field("namespace", election.namespace_name, AnyText{},
          "of the Lease; empty: that of Berth's pod, outside of a pod `default`");
  v.Field("name", election.name, AnyText{}, "of the Lease");
  v.Field("leaseSeconds", election.lease_seconds, Integers{5, 300},
          "after so long without a renewal another replica takes over");
}

template <class Visitor>
void Describe(Visitor& v, Config& config) {
  v.Field("profile", config.profile, AnyText{},
          "the policy that decides: a built-in one or one of `profiles`");
  v.List("profiles", config.profiles, "policies of your own");
  v.List("requestMix", config.request_mix,
         "the kinds of pods to expect; empty: learned from the pods that arrive");
  v.Group("learning", config.learning, "how the mix is learned");
  v.Group("expectedWaste", config.expected_waste, "of the scorer `expected-waste`");
  v.List("resources", config.resources,
         "resource names by which pods request GPUs, besides those of the known vendors");
  v.Group("nodeLabels", config.node_labels, "where nodes publish facts about their GPUs");
  v.List("machineTypes", config.machine_types,
         "machine types of your own, and what is otherwise of those of the catalogue; what is not "
         "said of them stays");
  TopologyConfig topology{config.topology_levels};
  v.Group("topology", topology, "which nodes are near each other");
  v.Group("gangs", config.gangs, "groups of pods that start whole or not at all");
  v.Group("dra", config.dra, "Dynamic Resource Allocation");
  v.Group("hami", config.hami, "HAMi");
  v.Group("gpushare", config.gpushare, "gpushare");
  v.Group("shares", config.shares, "shares of GPUs");
  v.Group("gpuNodes", config.gpu_nodes, "nodes that have GPUs");
  v.List("traits", config.traits, "sorts of nodes of your own, beside those that Berth knows");
  v.List("workloadClasses", config.workload_classes,
         "sorts of pods and the nodes that they want; a pod is of the first that it matches");
  v.Group("metrics", config.metrics, "metrics of which there are many");
  v.Group("server", config.server, "");
  v.Group("leaderElection", config.leader_election, "");
  v.Field("reservationSeconds", config.reservation_seconds, Integers{1, 3600},
          "how long a bind may take before Berth asks the API server for its outcome");
  v.Field("nodesToScore", config.nodes_to_score, Integers{0, 1'000'000},
          "how many of the nodes that fit a GPU pod go on to kube-scheduler's scoring; 0: all");
  v.Field("logLevel", config.log_level, Words{kLogLevelWords}, "the least severe level logged");
}

}  // namespace berth
