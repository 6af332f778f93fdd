// SPDX-License-Identifier: Apache-2.0
//
// MigReport: the MIG devices of a cluster, for metrics. Pure functions.
#pragma once

#include <map>
#include <string>

#include "cluster/mig_offers.h"
#include "cluster/snapshot.h"

namespace berth {

struct MigProfileCount {
  int taken = 0;
  // How many more fit, of this profile alone: instances that are free, or placements on GPUs that
  // are cut when a pod comes.
  int free = 0;
};

struct MigProductCount {
  int static_gpus = 0, dynamic_gpus = 0;
  int dra_gpus = 0;  // cut for ResourceClaims
  // Memory units of the GPUs, and how many of them instances that pods or claims have take.
  int units = 0, taken_units = 0;
  std::map<std::string, MigProfileCount> profiles;  // by name
};

struct MigReport {
  std::map<std::string, MigProductCount> products;  // by name
  std::map<std::string, int> troubled_nodes;        // by the name of the trouble, all of them
};

// Looks at every node that has MIG devices, of the cluster's or offered to claims; those in trouble
// count as troubled, and their devices all the same.
MigReport ReportMig(const Snapshot& snapshot, const MigOffers::ByNode& offers = {});

}  // namespace berth
