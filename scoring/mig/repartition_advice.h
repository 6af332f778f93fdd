// SPDX-License-Identifier: Apache-2.0
//
// Repartition advice: the standard layout of a node with which the most waiting pods would fit.
//
// The layouts are those that NVIDIA's mig-manager knows by name (label nvidia.com/mig.config):
// all-PROFILE, as many of one profile as a GPU takes, and all-balanced (two 1g, one 2g, one 3g on
// the grid of 8 units; two 1g and one 2g on an A30). Changing one takes minutes and clears the
// node, so this is advice for people about a node without GPU pods, never an action. Pure
// functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/mig/mig_product.h"

namespace berth {

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
  // form answers (mig_packability.h).
  std::optional<int> fits_cut_at_will;
};

// `waiting[r]` pods wait for row r; `now[r]` instances of it are free on the node; both on `gpus`
// GPUs without pods. The layout with which the most pods fit; of equals the one with which more
// memory is used, then the earlier. nullopt where no layout takes more than what is there.
// Requires: one number per row, none negative; gpus >= 1.
std::optional<RepartitionAdvice> AdviseRepartition(const MigProduct& product, int gpus,
                                                   std::span<const int> waiting,
                                                   std::span<const int> now);

}  // namespace berth
