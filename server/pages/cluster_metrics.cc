// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/state/snapshot.h"
#include "scoring/node_guard.h"
#include "scoring/node_watts.h"
#include "scoring/waste/waste_report.h"
#include "server/pages/metrics_parts.h"
#include "topology/domains/domain_tree.h"
#include "topology/domains/topology_levels.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

// Of the nodes of one model, or of one vendor.
struct Totals {
  // GPUs; one with nothing on it is idle, and of one that is claimed a ResourceClaim holds a part
  // or all.
  double allocated = 0, free = 0, unhealthy = 0, idle = 0, claimed = 0;
  // Places on GPUs with several users; the bytes are of those whose memory is known.
  double taken = 0, open = 0, missing = 0, taken_bytes = 0, open_bytes = 0;
  std::optional<double> watts;  // of the nodes whose power is known
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
  totals.unhealthy += static_cast<double>(node.gpus().size()) - node.healthy_gpus();
  totals.allocated += node.healthy_gpus() - free;
  if (const auto watts = EstimatedWatts(node)) totals.watts = totals.watts.value_or(0) + *watts;
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
  TotalsByName gpus, places;  // by model
  TotalsByName vendors;       // of both
};

AllTotals TotalsOf(const Snapshot& snapshot) {
  AllTotals all;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const NodeSpec& spec = node.spec();
    const bool has_gpus = !node.gpus().empty(), has_places = spec.places.count > 0;
    if (has_gpus) AddGpusOf(node, all.gpus[spec.gpu_model]);
    if (has_places) AddPlacesOf(node, all.places[spec.gpu_model]);
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
  text.Gauge("berth_gpu_power_estimate_watts",
             "Estimated power draw of nodes by GPU model: GPUs in use at their power limit, others "
             "idle");
  for (const auto& [model, totals] : all.gpus) {
    if (totals.watts) text.Sample(*totals.watts, {{"model", model}});
  }
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

}  // namespace berth
