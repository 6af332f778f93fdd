// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/node_pools.h"

#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "cluster/values/labels.h"
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
  return static_cast<int>(spec.gpus.size()) + spec.places.count + partitioned;
}

// By label, name and what is otherwise alike.
using PoolKey = std::tuple<std::string, std::string, std::string>;

PoolKey KeyOf(const NodeSpec& spec) {
  const std::string* const type = FindLabel(spec.labels, kInstanceTypeLabel);
  // The model stands for the type of machines that have none.
  const std::string kind =
      type != nullptr ? *type : spec.gpu_model + " x" + std::to_string(GpusOf(spec));
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
  const bool is_azure = pool.label == kAzurePool || pool.label == kOldAzurePool;
  pool.not_autoscaled = is_azure && spec.mig.known() ? kNoAzureMig : "";
}

}  // namespace

std::vector<NodePool> PoolsOf(const Snapshot& snapshot) {
  struct Found {
    NodePool pool;
    bool is_ready = false;  // what it is like
  };
  std::map<PoolKey, Found> pools;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (GpusOf(spec) == 0) continue;
    PoolKey key = KeyOf(spec);
    auto& [pool, is_ready] = pools[key];
    if (pool.nodes == 0) pool = PoolOf(key, spec);
    ++pool.nodes;
    if (!pool.like.empty() && (is_ready || !spec.ready)) continue;
    Describe(spec, pool);
    is_ready = spec.ready;
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

}  // namespace berth
