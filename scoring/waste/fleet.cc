// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/fleet.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/node/likeness_memo.h"
#include "scoring/waste/fleet_mix.h"

namespace berth {
namespace {

// The models that most nodes have, where there are too many.
std::set<std::string_view> ModelsToKeep(const Fleet& fleet) {
  std::map<std::string_view, int> nodes;
  for (const NodeKind& kind : fleet) nodes[kind.gpu_model] += kind.nodes;
  std::vector<std::pair<std::string_view, int>> models(nodes.begin(), nodes.end());
  std::ranges::stable_sort(models, std::greater<>(), &std::pair<std::string_view, int>::second);
  models.resize(std::min(models.size(), kMostFleetModels));
  std::set<std::string_view> kept;
  for (const auto& [model, count] : models) kept.insert(model);
  return kept;
}

// Of the kinds of one model, which are adjacent, every step-th one represents those after it.
Fleet Coarsened(const Fleet& fleet) {
  const std::set<std::string_view> models = ModelsToKeep(fleet);
  const std::size_t step = fleet.size() / (kMostKinds - kMostFleetModels) + 1;
  Fleet kept;
  std::size_t of_last = step;  // how many kinds the last one stands for
  for (const NodeKind& kind : fleet) {
    if (!models.contains(kind.gpu_model)) continue;
    const bool joins = of_last < step && kept.back().gpu_model == kind.gpu_model;
    if (joins) {
      kept.back().nodes += kind.nodes;
      ++of_last;
    } else {
      kept.push_back(kind);
      of_last = 1;
    }
  }
  return kept;
}

}  // namespace

Fleet FleetOf(const Snapshot& snapshot) {
  struct Kind {
    const NodeSpec* spec;
    int nodes = 0;
  };
  std::map<std::tuple<std::string_view, std::int64_t, std::size_t, std::size_t>, Kind> kinds;
  LikenessMemo<Kind*> known(snapshot.size());
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const NodeSpec& spec = node.spec();
    if (Kind* const* const same = known.Find(node)) {
      (*same)->spec = &spec;
      ++(*same)->nodes;
      continue;
    }
    if (spec.gpus.empty()) continue;
    std::size_t healthy = 0;
    for (const GpuSpec& gpu : spec.gpus) healthy += gpu.healthy ? 1 : 0;
    healthy -= std::min(healthy, static_cast<std::size_t>(spec.missing));
    Kind& kind = kinds[{spec.gpu_model, spec.cpu_milli, spec.gpus.size(), healthy}];
    kind.spec = &spec;
    ++kind.nodes;
    known.Put(node, &kind);
  }
  Fleet fleet;
  for (const auto& [key, kind] : kinds) {
    // Alive as long as the node: it has no use for a copy of the spec.
    const std::shared_ptr<const NodeSpec> spec(std::shared_ptr<void>(), kind.spec);
    fleet.push_back({kind.spec->gpu_model, GpuState::WithMemory(Node(spec)), kind.nodes});
  }
  return fleet.size() > kMostKinds ? Coarsened(fleet) : fleet;
}

Fleet SampleOf(const Snapshot& snapshot, std::size_t nodes) {
  std::vector<NodeIndex> with_gpus;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    if (!snapshot.node(i).gpus().empty()) with_gpus.push_back(i);
  }
  const std::size_t step = std::max<std::size_t>(with_gpus.size() / nodes, 1);
  Fleet sample;
  for (std::size_t i = 0; i < with_gpus.size(); i += step) {
    const Node& node = snapshot.node(with_gpus[i]);
    sample.push_back({node.spec().gpu_model, GpuState::WithMemory(node), 1});
  }
  return sample;
}

double UsedOf(const Snapshot& snapshot, const CardWorth& worth) {
  double free = 0, all = 0;
  struct Sums {
    double free = 0, all = 0;
  };
  LikenessMemo<Sums> known(snapshot.size());
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (const Sums* const same = known.Find(node)) {
      free += same->free;
      all += same->all;
      continue;
    }
    const Sums before{free, all};
    for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
      all += node.spec().gpus[gpu].healthy ? kMilliPerGpu : 0;
      const int milli = UsableMilli(node, gpu);
      const std::int64_t card_mib = node.spec().gpus[gpu].memory_mib;
      // Nobody gets memory of a GPU without compute.
      const bool counts_memory = worth.counts_memory && card_mib > 0 && milli > 0;
      free += counts_memory ? worth.MilliOf(milli, UsableMib(node, gpu), card_mib) : milli;
    }
    // Whole thousandths are exact in any order.
    if (!worth.counts_memory) known.Put(node, {free - before.free, all - before.all});
  }
  return all > 0 ? 1 - free / all : 0;
}

}  // namespace berth
