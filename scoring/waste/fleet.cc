// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/fleet.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "cluster/node/likeness_memo.h"

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

constexpr double kWorthExponent = 4;

// Merges a class into one that asks for the same; the memory is the mean of both.
void Join(RequestClass& into, const RequestClass& from) {
  const double weight = into.weight + from.weight;
  const double memory = static_cast<double>(into.shape.memory_bytes) * into.weight +
                        static_cast<double>(from.shape.memory_bytes) * from.weight;
  into.shape.memory_bytes = static_cast<std::int64_t>(memory / weight);
  into.weight = weight;
}

}  // namespace

Fleet FleetOf(const Snapshot& snapshot) {
  struct Kind {
    const NodeSpec* spec;
    int nodes = 0;
  };
  // Machines of one kind differ by less in what the system leaves of their main memory.
  constexpr std::int64_t kStep = std::int64_t{8} << 30;
  std::map<std::tuple<std::string_view, std::int64_t, std::size_t, std::size_t, std::int64_t>, Kind>
      kinds;
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
    Kind& kind = kinds[{spec.gpu_model, spec.cpu_milli, spec.gpus.size(), healthy,
                        spec.memory_bytes / kStep}];
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

FleetModels ModelsOf(const Fleet& fleet) {
  FleetModels names;
  for (const NodeKind& kind : fleet) names.insert(kind.gpu_model);
  return names;
}

RequestMix OnFleet(RequestMix mix, const FleetModels& models) {
  const auto is_missing = [&models](const std::string& model) { return !models.contains(model); };
  std::erase_if(mix, [&](RequestClass& entry) {
    if (entry.shape.models.empty()) return false;
    std::erase_if(entry.shape.models, is_missing);
    return entry.shape.models.empty();
  });
  std::map<RequestShape, std::size_t> first;  // class by what it asks for, but for the memory
  std::size_t kept = 0;
  double sum = 0;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    RequestShape key = mix[i].shape;
    key.memory_bytes = 0;
    sum += mix[i].weight;
    const auto [known, is_new] = first.emplace(std::move(key), kept);
    if (!is_new) {
      Join(mix[known->second], mix[i]);
    } else if (kept != i) {
      mix[kept++] = std::move(mix[i]);
    } else {
      ++kept;
    }
  }
  const bool is_whole = kept == mix.size() && sum > 1 - 1e-9;
  if (is_whole) return mix;  // as it was, to the last bit
  mix.resize(kept);
  for (RequestClass& entry : mix) entry.weight /= sum;
  std::ranges::stable_sort(mix, std::greater<>(), &RequestClass::weight);
  return mix;
}

CardWorth WorthOf(const RequestMix& mix, const Fleet& fleet) {
  CardWorth worth;
  double cards = 0, memory_mib = 0;
  for (const NodeKind& kind : fleet) {
    if (kind.state.card_mib == 0) continue;
    const double here = static_cast<double>(kind.nodes) * kind.state.count;
    cards += here;
    memory_mib += here * static_cast<double>(kind.state.card_mib);
  }
  if (memory_mib <= 0) return worth;
  worth.mean_card_mib = memory_mib / cards;
  double compute = 0, memory = 0;
  for (const RequestClass& entry : mix) {
    const double asked = entry.shape.gpu_count() * entry.shape.milli_per_gpu();
    const std::int64_t says = ShareMemoryMib(entry.shape);
    compute += entry.weight * asked / kMilliPerGpu;
    memory += entry.weight * (says == 0 ? asked / kMilliPerGpu
                                        : entry.shape.gpu_count() * static_cast<double>(says) /
                                              worth.mean_card_mib);
    worth.counts_memory = worth.counts_memory || says > 0;
  }
  if (!worth.counts_memory) return worth;
  const double ratio = std::pow(memory / compute, kWorthExponent);
  worth.compute = 1 / (1 + ratio);
  worth.memory = ratio / (1 + ratio);
  return worth;
}

}  // namespace berth
