// SPDX-License-Identifier: Apache-2.0
//
// RepartitionReport: the nodes that would take waiting pods after a repartitioning, each with the
// best of the standard layouts (StandardMigConfigs). For people: Berth repartitions nothing.
//
// Only nodes whose GPUs are all partitioned are considered (static, and not fixed), without GPU
// pods, devices with several users, or trouble; and only waiting pods that ask for one device by
// the name of its profile. A pod counts for the first node, and no other, that admits it
// (admission.h) and whose free CPU, memory and disk suffice for so many like it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/claims/device_offers.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "topology/mig/mig_product.h"

namespace berth {

// Repartition advice: the standard layout of a node with which the most waiting pods would fit.
//
// The layouts are those that NVIDIA's mig-manager knows by name (label nvidia.com/mig.config):
// all-PROFILE, as many of one profile as a GPU takes, and all-balanced (two 1g, one 2g, one 3g on
// the grid of 8 units; two 1g and one 2g on an A30). Changing one takes minutes and clears the
// node, so this is advice for people about a node without GPU pods, never an action. Pure
// functions.

struct MigConfig {
  std::string name;            // "all-1g.5gb.me", "all-balanced"
  std::vector<int> instances;  // per row of the product, on each GPU
};

// In the order of the rows, all-balanced last (where the product has it).
std::vector<MigConfig> StandardMigConfigs(const MigProduct& product);

struct RepartitionAdvice {
  std::string config;
  int fits = 0;      // waiting pods that fit with it
  int fits_now = 0;  // with what the node has
  // With GPUs that are cut at will (dynamic MIG), small profiles first; nullopt where no closed
  // form answers (mig_states.h).
  std::optional<int> fits_cut_at_will;
};

// `waiting[r]` pods wait for row r; `now[r]` instances of it are free on the node; both on `gpus`
// GPUs without pods. The layout with which the most pods fit; of equals the one with which more
// memory is used, then the earlier. nullopt where no layout takes more than what is there.
// Requires: one number per row, none negative; gpus >= 1.
std::optional<RepartitionAdvice> AdviseRepartition(const MigProduct& product, int gpus,
                                                   std::span<const int> waiting,
                                                   std::span<const int> now);

struct NodeAdvice {
  std::string node;
  std::string product;  // of the catalogue
  int gpus = 0;         // to be repartitioned
  RepartitionAdvice advice;
};

// Waiting pods beyond so many different shapes are left out, the last ones first.
inline constexpr std::size_t kMostWaitingKinds = 256;

// By the names of the nodes. Pure; some 10 microseconds per idle node.
std::vector<NodeAdvice> AdviseNodes(const Snapshot& snapshot,
                                    std::span<const std::shared_ptr<const PodRequest>> waiting);

// "node n1 to all-balanced: 12 waiting pods fit, 0 with its present partitioning".
std::string TextOf(const NodeAdvice& advice);

// MigReport: the MIG devices of a cluster, for metrics. Pure functions.
struct MigProfileCount {
  int taken = 0;
  // How many more instances fit, of this profile alone: free instances, or placements on GPUs that
  // are partitioned when a pod comes.
  int free = 0;
};

struct MigProductCount {
  int static_gpus = 0, dynamic_gpus = 0;
  int dra_gpus = 0;  // partitioned for ResourceClaims
  // Memory units of the GPUs, and those of instances that pods or claims have.
  int units = 0, taken_units = 0;
  std::map<std::string, MigProfileCount> profiles;  // by name
};

struct MigReport {
  std::map<std::string, MigProductCount> products;  // by name
  std::map<std::string, int> troubled_nodes;        // by the name of the trouble, all of them
};

// Visits every node with MIG devices, the cluster's own or offered to claims. Nodes in trouble
// count as troubled, and their devices count all the same.
MigReport ReportMig(const Snapshot& snapshot, const MigOffers::ByNode& offers = {});

}  // namespace berth
