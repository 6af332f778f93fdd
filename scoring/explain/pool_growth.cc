// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/pool_growth.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "cluster/values/alike.h"
#include "cluster/values/node_constraints.h"
#include "topology/machine_types.h"

namespace berth {
namespace {

constexpr std::string_view kAzurePool = "kubernetes.azure.com/agentpool";
constexpr std::string_view kOldAzurePool = "agentpool";
constexpr std::array<std::string_view, 7> kPoolLabels = {"karpenter.sh/nodepool",
                                                         "eks.amazonaws.com/nodegroup",
                                                         "alpha.eksctl.io/nodegroup-name",
                                                         "cloud.google.com/gke-nodepool",
                                                         kAzurePool,
                                                         kOldAzurePool,
                                                         "worker.gardener.cloud/pool"};

// learn.microsoft.com/azure/aks/gpu-multi-instance: no cluster autoscaler with such pools; scaling
// by hand works (github.com/Azure/AKS/issues/4216, 5161).
constexpr std::string_view kNoAzureMig =
    "AKS does not autoscale node pools with MIG: they are scaled by hand";

int GpusOf(const NodeSpec& spec) {
  const int partitioned = spec.mig.known() ? static_cast<int>(spec.mig->gpus.size()) : 0;
  return static_cast<int>(spec.gpus.size()) + spec.places.gpus + partitioned;
}

// By label, name and what is otherwise alike.
using PoolKey = std::tuple<std::string, std::string, std::string>;

PoolKey KeyOf(const NodeSpec& spec) {
  const std::string* const type = FindLabel(spec.labels, kInstanceTypeLabel);
  // The model, or the resource, stands for the type of machines that have none.
  const std::string& model = spec.gpu_model.empty() ? spec.gpu_resource : spec.gpu_model;
  const std::string kind =
      type != nullptr && !type->empty()
          ? *type
          : (model.empty() ? "GPUs" : model) + " x" +
                std::to_string(GpusOf(spec) - spec.places.gpus + spec.places.count);
  for (const std::string_view label : kPoolLabels) {
    const std::string* const name = FindLabel(spec.labels, label);
    if (name != nullptr && !name->empty()) return {std::string(label), *name, kind};
  }
  return {"", kind, kind};
}

NodePool PoolOf(const PoolKey& key, const NodeSpec& spec) {
  NodePool pool{.name = std::get<1>(key), .label = std::get<0>(key)};
  if (const auto* type = FindLabel(spec.labels, kInstanceTypeLabel)) pool.instance_type = *type;
  return pool;
}

void Describe(const NodeSpec& spec, NodePool& pool) {
  pool.like = spec.name;
  pool.model = spec.gpu_model;
  pool.gpus = GpusOf(spec);
  pool.replicas = spec.places.count;
  const bool is_azure = pool.label == kAzurePool || pool.label == kOldAzurePool;
  pool.not_autoscaled = is_azure && spec.mig.known() ? kNoAzureMig : "";
}

// A new node of a pool is like the one that lacks least: ready, with all GPUs and the devices of
// other plugins, whose number is 0 where their plugin is gone from a node.
using Wholeness = std::tuple<bool, int, std::ptrdiff_t>;

Wholeness WholenessOf(const NodeSpec& spec) {
  const auto is_there = [](const OtherResource& other) { return other.amount > 0; };
  return {spec.ready, GpusOf(spec), std::ranges::count_if(spec.others, is_there)};
}

using SnapshotPtr = std::shared_ptr<const Snapshot>;

// A pool, with a template of its nodes where it has none.
struct Source {
  NodePool pool;
  const NodeSpec* shape = nullptr;
};

std::vector<Source> SourcesOf(const Snapshot& snapshot, std::span<const NodeSpec> at_zero) {
  std::vector<Source> sources;
  for (NodePool& pool : PoolsOf(snapshot)) sources.push_back({std::move(pool), nullptr});
  for (const NodeSpec& node : at_zero) sources.push_back({PoolAtZero(node), &node});
  return sources;
}

// The nodes that may come, of all pools, are in every snapshot, not ready until it is their turn:
// so all snapshots have the same nodes, and the engine evaluates those anew that change.
struct Stage {
  SnapshotPtr closed;                            // without any of them
  std::vector<std::vector<NodeIndex>> of_pools;  // where they are
  std::vector<std::vector<std::shared_ptr<const Node>>> open;
};

Result<Stage> MakeStage(const SnapshotPtr& from, const std::vector<Source>& pools, int nodes) {
  if (static_cast<std::size_t>(nodes) * pools.size() > kMostAddedNodes) {
    return Invalid("grow: want at most " + std::to_string(kMostAddedNodes) + " nodes in all, got " +
                   std::to_string(nodes) + " of each of " + std::to_string(pools.size()) +
                   " pools");
  }
  NodeEdits edits;
  for (const auto& [pool, shape] : pools) {
    NodeCopies& copies = edits.add.emplace_back(NodeCopies{pool.like, nodes});
    if (shape != nullptr) copies.shape = *shape;
  }
  BERTH_TRY(const EditedNodes edited, Edit(from, edits));
  Stage stage{edited.snapshot, {}, {}};
  auto name = edited.added.begin();
  for (std::size_t p = 0; p < pools.size(); ++p) {
    stage.of_pools.emplace_back();
    stage.open.emplace_back();
    for (int i = 0; i < nodes; ++i, ++name) {
      const NodeIndex at = edited.snapshot->names().Find(*name);
      const Node& node = edited.snapshot->node(at);
      auto spec = std::make_shared<NodeSpec>(node.spec());
      spec->ready = false;
      stage.of_pools.back().push_back(at);
      stage.open.back().push_back(std::make_shared<const Node>(node));
      stage.closed = std::make_shared<const Snapshot>(
          stage.closed->With(at, std::make_shared<const Node>(std::move(spec))));
    }
  }
  return stage;
}

class Grower {
 public:
  Grower(const Engine& engine, const WhatIfAsk& ask) : engine_(engine), ask_(ask) {
    ask_.nodes = {};
    ask_.explains = false;
  }

  // Places all pods; `growth` hears of those that have a place. The others are left over.
  Status PlaceNow(const SnapshotPtr& closed, Growth& growth) {
    ask_.snapshot = closed;
    BERTH_TRY(const WhatIfAnswer answer, WhatIf(engine_, ask_));
    for (std::size_t i = 0; i < ask_.pods.size(); ++i) {
      growth.asked += ask_.pods[i];
      if (answer.pods[i].placement) {
        growth.now += ask_.pods[i];
      } else {
        left_.push_back(ask_.pods[i]);
        places_.push_back(i);
      }
    }
    full_ = answer.nodes.snapshot;
    return {};
  }

  // Requires: PlaceNow.
  Result<std::vector<Taken>> Grow(const Stage& stage, std::size_t pool) {
    std::vector<Taken> all;
    Snapshot grown = *full_;
    for (std::size_t i = 0; i < stage.open[pool].size(); ++i) {
      grown = grown.With(stage.of_pools[pool][i], stage.open[pool][i]);
      if (!all.empty() && all.back().pods == std::ssize(left_)) {
        all.push_back(all.back());
        continue;
      }
      BERTH_TRY(const Taken taken, PlaceLeft(std::make_shared<const Snapshot>(grown)));
      all.push_back(taken);
    }
    return all;
  }

  // With all nodes of all pools, and without the pods that were placed.
  static SnapshotPtr Open(const Stage& stage) {
    Snapshot open = *stage.closed;
    for (std::size_t p = 0; p < stage.open.size(); ++p) {
      for (std::size_t i = 0; i < stage.open[p].size(); ++i) {
        open = open.With(stage.of_pools[p][i], stage.open[p][i]);
      }
    }
    return std::make_shared<const Snapshot>(std::move(open));
  }

  // Those that were left over every time and have no place in the snapshot even without the others.
  Status AddNowhere(const SnapshotPtr& open, Growth& growth) {
    std::vector<Kind> kinds;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (somewhere_.contains(i)) continue;
      auto kind = std::ranges::find_if(kinds, [&](const Kind& k) { return IsOf(k, left_[i]); });
      if (kind == kinds.end()) {
        if (kinds.size() == kMostToldKinds) continue;
        BERTH_TRY(const WhatIfAnswer alone, PlaceAlone(open, left_[i]));
        kind = kinds.insert(kinds.end(), {&left_[i], alone.fitting > 0});
        if (!kind->fits) growth.nowhere_whys[places_[i]] = alone.whys.front().text;
      }
      if (!kind->fits) growth.nowhere.push_back(places_[i]);
    }
    return {};
  }

 private:
  struct Kind {
    const PodRequest* pod;
    bool fits;
  };
  // Pods of a gang are one kind.
  static bool IsOf(const Kind& kind, const PodRequest& pod) {
    if (!pod.gang.empty() || !kind.pod->gang.empty()) return pod.gang.id == kind.pod->gang.id;
    return SamePodKind(*kind.pod, pod);
  }

  Result<WhatIfAnswer> PlaceAlone(const SnapshotPtr& open, const PodRequest& pod) {
    std::vector<PodRequest> members;
    for (const PodRequest& other : left_) {
      if (&other == &pod || (!pod.gang.empty() && other.gang.id == pod.gang.id)) {
        members.push_back(other);
      }
    }
    WhatIfAsk ask = ask_;
    ask.snapshot = open;
    ask.pods = members;
    return WhatIf(engine_, ask);
  }

  Result<Taken> PlaceLeft(const SnapshotPtr& snapshot) {
    WhatIfAsk ask = ask_;
    ask.snapshot = snapshot;
    ask.pods = left_;
    BERTH_TRY(const WhatIfAnswer answer, WhatIf(engine_, ask));
    Taken taken;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (!answer.pods[i].placement) continue;
      taken += left_[i];
      somewhere_.insert(i);
    }
    return taken;
  }

  EngineApart engine_;
  WhatIfAsk ask_;
  SnapshotPtr full_;
  std::vector<PodRequest> left_;
  std::vector<std::size_t> places_;  // of `left_` in the ask
  std::set<std::size_t> somewhere_;  // of `left_`
};

}  // namespace

Taken& Taken::operator+=(const PodRequest& pod) {
  ++pods;
  gpu_milli += std::int64_t{pod.shape.gpu_count()} * pod.shape.milli_per_gpu();
  return *this;
}

std::vector<NodePool> PoolsOf(const Snapshot& snapshot) {
  struct Found {
    NodePool pool;
    Wholeness of_like;
  };
  std::map<PoolKey, Found> pools;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (GpusOf(spec) + spec.places.count == 0) continue;
    PoolKey key = KeyOf(spec);
    auto& [pool, of_like] = pools[key];
    if (pool.nodes == 0) pool = PoolOf(key, spec);
    ++pool.nodes;
    const Wholeness whole = WholenessOf(spec);
    if (!pool.like.empty() && whole <= of_like) continue;
    Describe(spec, pool);
    of_like = whole;
  }
  std::vector<NodePool> all;
  for (auto& [key, found] : pools) all.push_back(std::move(found.pool));
  return all;
}

NodePool PoolAtZero(const NodeSpec& node) {
  NodePool pool = PoolOf(KeyOf(node), node);
  Describe(node, pool);
  return pool;
}

Result<Growth> GrowPools(const Engine& engine, const WhatIfAsk& ask, int most_nodes,
                         std::span<const NodeSpec> at_zero) {
  Growth growth;
  BERTH_TRY(growth.nodes, Edit(ask.snapshot, ask.nodes));
  const std::vector<Source> pools = SourcesOf(*growth.nodes.snapshot, at_zero);
  BERTH_TRY(const Stage stage, MakeStage(growth.nodes.snapshot, pools, most_nodes));
  Grower grower(engine, ask);
  BERTH_TRY_STATUS(grower.PlaceNow(stage.closed, growth));
  for (std::size_t p = 0; p < pools.size(); ++p) {
    BERTH_TRY(std::vector<Taken> taken, grower.Grow(stage, p));
    growth.pools.push_back({pools[p].pool, std::move(taken)});
  }
  BERTH_TRY_STATUS(grower.AddNowhere(Grower::Open(stage), growth));
  return growth;
}

}  // namespace berth
