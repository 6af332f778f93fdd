// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/state/snapshot.h"
#include "scoring/admission.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/mig/repartition_report.h"
#include "scoring/waste/waste_report.h"
#include "server/pages/metrics_parts.h"
#include "topology/domains/domain_tree.h"
#include "topology/gpu_vendor.h"
#include "topology/mig/mig_product.h"

namespace berth {
namespace {

// Of the nodes of one model, or of one vendor.
struct Totals {
  // GPUs; one with nothing on it is idle, one that is claimed belongs to a ResourceClaim in part.
  double allocated = 0, free = 0, unhealthy = 0, idle = 0, claimed = 0;
  // Places on GPUs with several users; the bytes are of those whose memory is known.
  double taken = 0, open = 0, missing = 0, taken_bytes = 0, open_bytes = 0;
};
using TotalsByName = std::map<std::string, Totals>;

// An unhealthy GPU counts as one unhealthy GPU, even if it is unknown which one it is or a pod
// holds it. What pods are known to hold of the other GPUs counts as allocated.
void AddGpusOf(const Node& node, Totals& totals) {
  totals.claimed += std::popcount(node.claimed());
  double free = 0;
  for (std::size_t g = 0; g < node.gpus().size(); ++g) {
    if (!node.IsOpen(static_cast<int>(g))) continue;
    free += node.gpus()[g].milli / double{kMilliPerGpu};
    totals.idle += node.gpus()[g].idle() ? 1 : 0;
  }
  totals.free += free;
  totals.unhealthy += node.unhealthy_gpus();
  totals.allocated += node.healthy_gpus() - free;
}

void AddPlacesOf(const Node& node, Totals& totals) {
  const double bytes_each = static_cast<double>(node.spec().places.memory_mib) * (1 << 20);
  const int open = std::max(node.free_places(), 0);
  totals.taken += node.places_taken();
  totals.open += open;
  totals.missing += node.spec().missing;
  totals.taken_bytes += node.places_taken() * bytes_each;
  totals.open_bytes += open * bytes_each;
}

struct AllTotals {
  int contradictions = 0;                                 // nodes
  TotalsByName gpus, places;                              // by model
  TotalsByName vendors;                                   // of both
  std::map<std::string, std::set<Version>> drivers = {};  // by model, where nodes say it
};

AllTotals TotalsOf(const Snapshot& snapshot) {
  AllTotals all;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const NodeSpec& spec = node.spec();
    const bool has_gpus = !node.gpus().empty(), has_places = spec.places.count > 0;
    all.contradictions += spec.gpu_contradiction.empty() ? 0 : 1;
    if (has_gpus) AddGpusOf(node, all.gpus[spec.gpu_model]);
    if (has_places) AddPlacesOf(node, all.places[spec.gpu_model]);
    if (const auto driver = VersionOf(spec.labels, Versioned::kDriver); driver && spec.has_gpus()) {
      all.drivers[spec.gpu_model].insert(*driver);
    }
    if (!has_gpus && !has_places) continue;
    Totals& vendor = all.vendors[std::string(VendorOf(spec.gpu_resource))];
    AddGpusOf(node, vendor);
    if (has_places) AddPlacesOf(node, vendor);
  }
  return all;
}

struct State {
  std::string_view name;
  double Totals::*value;
};
constexpr std::array<State, 3> kGpuStates = {{{"allocated", &Totals::allocated},
                                              {"free", &Totals::free},
                                              {"unhealthy", &Totals::unhealthy}}};
constexpr std::array<State, 3> kPlaceStates = {
    {{"taken", &Totals::taken}, {"free", &Totals::open}, {"unhealthy", &Totals::missing}}};
constexpr std::array<State, 2> kMemoryStates = {
    {{"taken", &Totals::taken_bytes}, {"free", &Totals::open_bytes}}};

void AddStates(const TotalsByName& by_name, std::string_view label, std::span<const State> states,
               MetricsText& text) {
  for (const auto& [name, totals] : by_name) {
    for (const State& state : states) {
      text.Sample(totals.*state.value, {{label, name}, {"state", state.name}});
    }
  }
}

void AddGpuMetrics(const AllTotals& all, MetricsText& text) {
  text.Gauge("berth_gpus",
             "GPUs by model and state; a share counts as a fraction, an unhealthy GPU as one");
  AddStates(all.gpus, "model", kGpuStates, text);
  text.Gauge("berth_gpus_idle", "Healthy GPUs without any allocation, by model");
  for (const auto& [model, totals] : all.gpus) text.Sample(totals.idle, {{"model", model}});
  text.Gauge("berth_gpus_claimed",
             "GPUs that ResourceClaims hold wholly or in part, by model; counted as allocated");
  for (const auto& [model, totals] : all.gpus) text.Sample(totals.claimed, {{"model", model}});
  text.Gauge("berth_nodes_with_gpu_contradiction",
             "Nodes that contradict themselves about how many GPUs they have; the log names each")
      .Sample(all.contradictions);
  text.Gauge("berth_gpu_drivers",
             "Driver versions among the nodes with a GPU model, where their labels say it");
  for (const auto& [model, drivers] : all.drivers) text.Sample(drivers.size(), {{"model", model}});
  text.Gauge("berth_vendor_gpus", "GPUs as in berth_gpus, by vendor and state");
  AddStates(all.vendors, "vendor", kGpuStates, text);
}

void AddPlaceMetrics(AllTotals all, MetricsText& text) {
  text.Gauge("berth_gpu_places", "GPU replicas (time-slicing or MPS), by model and state");
  AddStates(all.places, "model", kPlaceStates, text);
  text.Gauge("berth_vendor_gpu_places", "GPU replicas as in berth_gpu_places, by vendor and state");
  AddStates(all.vendors, "vendor", kPlaceStates, text);
  text.Gauge("berth_gpu_place_memory_bytes", "Memory of the GPU replicas, by model and state");
  std::erase_if(all.places, [](const auto& named) {
    return named.second.taken_bytes + named.second.open_bytes == 0;  // not known
  });
  AddStates(all.places, "model", kMemoryStates, text);
}

constexpr std::array<std::string_view, 7> kStates = {"gathering",  "waiting", "alone", "planned",
                                                     "committing", "begun",   "whole"};

struct GivenTotals {
  int by_kubelet = 0, by_agent = 0;  // pods whose GPUs they have said
  int on_others = 0;
  std::map<std::string, int> by_node;  // these
  std::array<double, kGpuSizes.size()> quality = {};
  std::array<int, kGpuSizes.size()> pods = {};
};

// The links of the GPUs that the pod has, relative to those that it was planned with.
double QualityRatio(const GpuLinks& links, const PodRecord& pod, std::size_t gpus) {
  if (!pod.on_other_gpus()) return 1;
  const int planned = links.quality(GpusAmong(pod.planned->grants, gpus));
  return planned == 0 ? 1 : links.quality(GpusAmong(pod.placement.grants, gpus)) / double(planned);
}

void AddGivenPod(const Node& node, const PodRecord& pod, GivenTotals& totals) {
  if (!pod.planned) return;
  ++(pod.evidence() == Evidence::kKubelet ? totals.by_kubelet : totals.by_agent);
  if (pod.on_other_gpus()) {
    ++totals.on_others;
    ++totals.by_node[node.spec().name];
  }
  const std::size_t gpus = pod.placement.grants.size();
  if (gpus < 2 || pod.planned->grants.size() != gpus || !node.spec().links.known()) return;
  totals.quality[GpuSizeOf(gpus)] += QualityRatio(node.spec().links, pod, node.gpus().size());
  ++totals.pods[GpuSizeOf(gpus)];
}

struct NamespaceUse {
  std::map<std::string, double> gpus;       // by model
  std::map<std::string, std::int64_t> mig;  // devices, by profile
};

void AddNode(const Node& node, std::map<std::string, NamespaceUse>& by_namespace) {
  for (const auto& pod : node.pods()) {
    if (!pod->pod.shape.wants_gpu() || pod->state == PodState::kPlanned) continue;
    NamespaceUse& use = by_namespace[pod->pod.id.namespace_name];
    for (const auto& [profile, devices] : MigHeld(*pod))
      use.mig[MigProfileName(profile)] += devices;
    const double gpus = GpusHeld(*pod, node.spec().places);
    if (gpus > 0) use.gpus[node.spec().gpu_model] += gpus;
  }
}

void ByNamespace(const Snapshot& snapshot, std::span<const WaitingPod> waiting, MetricsText& text) {
  std::map<std::string, NamespaceUse> by_namespace;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) AddNode(snapshot.node(i), by_namespace);
  std::map<std::string, std::int64_t> waits;
  for (const WaitingPod& pod : waiting) {
    if (!pod.gated() && pod.pod->shape.wants_gpu()) ++waits[pod.pod->id.namespace_name];
  }
  text.Gauge("berth_namespace_gpus",
             "GPUs held by pods of the namespace; shares and GPU replicas count as fractions");
  for (const auto& [name, use] : by_namespace) {
    for (const auto& [model, gpus] : use.gpus) {
      text.Sample(gpus, {{"pod_namespace", name}, {"model", model}});
    }
  }
  text.Gauge("berth_namespace_mig_devices", "MIG devices held by pods of the namespace");
  for (const auto& [name, use] : by_namespace) {
    for (const auto& [profile, devices] : use.mig) {
      text.Sample(devices, {{"pod_namespace", name}, {"profile", profile}});
    }
  }
  text.Gauge("berth_namespace_waiting_gpu_pods",
             "Waiting GPU pods of the namespace, without gated ones");
  for (const auto& [name, pods] : waits) text.Sample(pods, {{"pod_namespace", name}});
}

struct ClassUse {
  std::map<std::string, double> gpus;  // by model
  double avoided = 0;                  // of these, on nodes with a trait that the class avoids
  std::int64_t waiting = 0;
};

bool Avoids(const NodeWishes& wishes, const NodeSpec& spec) {
  return std::ranges::any_of(wishes.wishes, [&spec](const TraitWish& wish) {
    return wish.weight < 0 && HasTrait(spec.traits, wish.trait);
  });
}

// Whether anybody is of a class is for the configuration to say: there is no switch.
void ByClass(const Snapshot& snapshot, std::span<const WaitingPod> waiting, MetricsText& text) {
  std::map<std::string, ClassUse> by_class;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& pod : node.pods()) {
      if (pod->pod.classes.empty() || pod->state == PodState::kPlanned) continue;
      ClassUse& use = by_class[pod->pod.classes.front()];
      const double gpus = GpusHeld(*pod, node.spec().places);
      use.gpus[node.spec().gpu_model] += gpus;
      if (Avoids(pod->pod.shape.nodes, node.spec())) use.avoided += gpus;
    }
  }
  for (const WaitingPod& pod : waiting) {
    if (!pod.gated() && !pod.pod->classes.empty()) ++by_class[pod.pod->classes.front()].waiting;
  }
  if (by_class.empty()) return;
  text.Gauge("berth_workload_class_gpus",
             "GPUs held by pods of the workload class; shares and GPU replicas count as fractions");
  for (const auto& [name, use] : by_class) {
    for (const auto& [model, gpus] : use.gpus) {
      text.Sample(gpus, {{"workload_class", name}, {"model", model}});
    }
  }
  text.Gauge("berth_workload_class_avoided_gpus",
             "GPUs that the workload class holds on nodes with a trait that it avoids");
  for (const auto& [name, use] : by_class) text.Sample(use.avoided, {{"workload_class", name}});
  text.Gauge("berth_workload_class_waiting_pods",
             "Waiting pods of the workload class, without gated ones");
  for (const auto& [name, use] : by_class) text.Sample(use.waiting, {{"workload_class", name}});
}

void ByGpu(const Snapshot& snapshot, MetricsText& text) {
  text.Gauge("berth_gpu_allocated_ratio", "Fraction of the GPU that pods and claims hold, 0 to 1");
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
      const std::string& uuid = node.spec().gpus[gpu].uuid;
      if (uuid.empty()) continue;
      text.Sample(1 - node.gpus()[gpu].milli / double{kMilliPerGpu},
                  {{"node", node.spec().name}, {"gpu", std::to_string(gpu)}, {"uuid", uuid}});
    }
  }
}

}  // namespace

void AddClusterMetrics(const Snapshot& snapshot, MetricsText& text) {
  text.Gauge("berth_nodes", "Nodes in the snapshot").Sample(snapshot.size());
  text.Gauge("berth_reservations", "Pods that hold devices and whose bind is not confirmed yet")
      .Sample(snapshot.CountReserved());
  text.Gauge("berth_pods_without_devices",
             "GPU pods bound without Berth; Berth assumes which GPUs they use")
      .Sample(snapshot.CountUnattributed());
  text.Gauge("berth_unguarded_gpu_nodes", "GPU nodes without a taint that keeps other pods away")
      .Sample(UnguardedGpuNodes(snapshot));
  text.Gauge("berth_nodes_with_gpu_condition",
             "Nodes closed to GPU pods by a node condition, by condition");
  std::map<std::string, int> by_condition;
  for (NodeIndex node = 0; node < snapshot.size(); ++node) {
    const std::string& condition = snapshot.node(node).spec().gpu_condition;
    if (!condition.empty()) ++by_condition[condition];
  }
  for (const auto& [condition, nodes] : by_condition) {
    text.Sample(nodes, {{"condition", condition}});
  }
  AllTotals all = TotalsOf(snapshot);
  AddGpuMetrics(all, text);
  AddPlaceMetrics(std::move(all), text);
}

void AddWasteMetrics(const std::map<std::string, Waste>& by_model, MetricsText& text) {
  text.Gauge("berth_expected_waste_gpus",
             "Free GPUs expected to stay idle once pods like recent ones fill the nodes");
  for (const auto& [model, waste] : by_model) {
    text.Sample(waste.expected_milli / kMilliPerGpu, {{"model", model}});
  }
  text.Gauge("berth_fragmentation_gpus",
             "Free GPUs that an average recent pod cannot use, by cause");
  for (const auto& [model, waste] : by_model) {
    for (std::size_t cause = 0; cause < kFragmentCauses; ++cause) {
      text.Sample(waste.fragment_milli[cause] / kMilliPerGpu,
                  {{"model", model}, {"cause", NameOf(FragmentCause(cause))}});
    }
  }
}

void AddTopologyMetrics(const TopologyLevels& levels, const DomainTree& tree, MetricsText& text) {
  text.Gauge("berth_topology_domains", "Topology domains, by level");
  for (std::size_t level = 0; level < levels.size(); ++level) {
    text.Sample(tree.CountNamed(level), {{"level", levels[level].name}});
  }
  text.Gauge("berth_topology_nodes", "Nodes with a label of the level");
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::size_t nodes = 0;
    for (std::size_t node = 0; node < tree.nodes(); ++node) {
      nodes += tree.named(tree.DomainOf(node, level)) ? 1U : 0U;
    }
    text.Sample(nodes, {{"level", levels[level].name}});
  }
}

void AddGangMetrics(std::span<const GangView> gangs, MetricsText& text) {
  const auto in = [gangs](std::string_view state) {
    return std::ranges::count(gangs, state, &GangView::state);
  };
  text.Gauge("berth_gangs", "Gangs (pods that start together or not at all), by state");
  for (const std::string_view state : kStates) text.Sample(in(state), {{"state", state}});
  text.Gauge("berth_gang_oldest_seconds", "Age of the oldest gang in this state");
  for (const std::string_view state : kStates) {
    Duration oldest{};
    for (const GangView& gang : gangs) {
      if (gang.state == state) oldest = std::max(oldest, gang.age);
    }
    text.Sample(std::chrono::duration<double>(oldest).count(), {{"state", state}});
  }
  text.Gauge("berth_gangs_partial", "Gangs that run with fewer pods than their minimum");
  text.Sample(in("begun"));
  text.Gauge("berth_binds_held", "Binds that wait for other pods of their gang");
  std::int64_t held = 0;
  for (const GangView& gang : gangs) held += gang.held;
  text.Sample(held);
}

void AddMigMetrics(const MigReport& report, std::span<const NodeAdvice> advices,
                   MetricsText& text) {
  text.Gauge("berth_mig_gpus", "MIG-partitioned GPUs");
  for (const auto& [product, count] : report.products) {
    text.Sample(count.static_gpus, {{"product", product}, {"partitioning", "static"}});
    text.Sample(count.dynamic_gpus, {{"product", product}, {"partitioning", "dynamic"}});
    text.Sample(count.dra_gpus, {{"product", product}, {"partitioning", "dra"}});
  }
  text.Gauge("berth_mig_memory_units", "Memory slices of MIG-partitioned GPUs, by state");
  for (const auto& [product, count] : report.products) {
    text.Sample(count.taken_units, {{"product", product}, {"state", "taken"}});
    text.Sample(count.units - count.taken_units, {{"product", product}, {"state", "free"}});
  }
  text.Gauge("berth_mig_devices",
             "MIG devices in use, and how many more of that profile alone would fit");
  for (const auto& [product, count] : report.products) {
    for (const auto& [profile, devices] : count.profiles) {
      text.Sample(devices.taken, {{"product", product}, {"profile", profile}, {"state", "taken"}});
      text.Sample(devices.free, {{"product", product}, {"profile", profile}, {"state", "free"}});
    }
  }
  text.Gauge("berth_mig_troubled_nodes",
             "Nodes closed to GPU pods because of their MIG configuration");
  for (const auto& [trouble, nodes] : report.troubled_nodes) {
    text.Sample(nodes, {{"trouble", trouble}});
  }
  text.Gauge("berth_mig_repartition_pods",
             "Waiting pods that idle nodes would take if repartitioned to the MIG config");
  for (const auto& [product, count] : report.products) {
    const MigProduct* const known = count.static_gpus > 0 ? FindMigProduct(product) : nullptr;
    if (known == nullptr) continue;
    for (const MigConfig& config : StandardMigConfigs(*known)) {
      int pods = 0;
      for (const NodeAdvice& at : advices) {
        if (at.product == product && at.advice.config == config.name) pods += at.advice.fits;
      }
      text.Sample(pods, {{"product", product}, {"config", config.name}});
    }
  }
}

void AddGivenMetrics(const Snapshot& snapshot, const MetricsConfig& wanted, MetricsText& text) {
  GivenTotals totals;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& pod : node.pods()) AddGivenPod(node, *pod, totals);
  }
  text.Gauge("berth_pods_with_given_gpus",
             "Running pods whose GPUs or MIG devices the kubelet or the node's agent has reported")
      .Sample(totals.by_kubelet, {{"by", "kubelet"}})
      .Sample(totals.by_agent, {{"by", "agent"}});
  text.Gauge("berth_pods_on_other_gpus",
             "Running pods that have other GPUs or MIG devices than Berth chose for them")
      .Sample(totals.on_others);
  text.Gauge("berth_given_link_quality_ratio",
             "Mean link quality of the GPUs that pods have, relative to those that Berth chose, by "
             "number of GPUs");
  for (std::size_t size = 0; size < kGpuSizes.size(); ++size) {
    if (totals.pods[size] == 0) continue;
    text.Sample(totals.quality[size] / totals.pods[size], {{"size", kGpuSizes[size]}});
  }
  if (!wanted.by_gpu) return;
  text.Gauge(
      "berth_node_pods_on_other_gpus",
      "Running pods of the node that have other GPUs or MIG devices than Berth chose for them");
  for (const auto& [node, pods] : totals.by_node) text.Sample(pods, {{"node", node}});
}

void AddUsageMetrics(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                     const MetricsConfig& wanted, MetricsText& text) {
  ByClass(snapshot, waiting, text);
  if (wanted.by_namespace) ByNamespace(snapshot, waiting, text);
  if (wanted.by_gpu) ByGpu(snapshot, text);
}

void AddRoomMakerMetrics(const RoomMaker::Stats& stats, MetricsText& text) {
  text.Counter("berth_room_plans_total",
               "Plans of moves that Berth carried out (makeRoom), by result")
      .Sample(stats.done, {{"result", "done"}})
      .Sample(stats.given_up, {{"result", "given_up"}});
  text.Counter("berth_room_moves_total", "Pods that Berth evicted to make room, by result")
      .Sample(stats.evicted, {{"result", "evicted"}})
      .Sample(stats.blocked, {{"result", "blocked"}})
      .Sample(stats.failed, {{"result", "failed"}});
  text.Gauge("berth_room_moves_left", "Moves to go of the plan that Berth carries out now")
      .Sample(stats.left);
  text.Gauge("berth_room_idle_given_up",
             "1 while Berth keeps no idle nodes because nodes that it kept idle vanished")
      .Sample(stats.gave_idle_up ? 1 : 0);
}

}  // namespace berth
