// SPDX-License-Identifier: Apache-2.0
//
// MigReport: the MIG devices of a cluster, for metrics. Pure functions.
#pragma once

#include <map>
#include <string>

#include "cluster/claims/mig_offers.h"
#include "cluster/state/snapshot.h"

namespace berth {

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
