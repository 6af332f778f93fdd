// SPDX-License-Identifier: Apache-2.0
//
// MIG devices of nodes; a test says only what matters to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/node/mig_library.h"
#include "cluster/node/mig_spec.h"
#include "cluster/values/placement.h"
#include "topology/mig/mig_product.h"

namespace berth::test {

inline MigProfile ProfileOf(const std::string& name) { return ParseMigProfile(name).value(); }

// "1g.5gb" at 4 of GPU 2, as Berth grants it.
inline MigGrant AGrant(int gpu, const std::string& profile, int start) {
  return {gpu, start, ProfileOf(profile), false};
}
// As it is granted where the node's own allocator picks.
inline MigGrant AGrantOf(const std::string& profile) { return {.profile = ProfileOf(profile)}; }

using ProfileAt = std::pair<std::string, int>;

inline MigSet SetOf(const MigProduct& product, const std::vector<ProfileAt>& instances) {
  MigSet set = 0;
  for (const auto& [profile, start] : instances) {
    set |= MigSet{1} << *product.PlacementAt(*product.RowOf(ProfileOf(profile)), start);
  }
  return set;
}

// GPUs 0, 1, ... that are cut when a pod comes, where Berth says.
inline MigSpec DynamicMig(int gpus, const std::string& product = "A100-40GB") {
  MigSpec spec;
  spec.product = MigLibrary::Catalogued(*FindMigProduct(product));
  for (int gpu = 0; gpu < gpus; ++gpu) spec.gpus.push_back({gpu, "", 0});
  spec.dynamic = true;
  spec.knowledge = MigKnowledge::kExact;
  spec.allocator = MigAllocator::kBerth;
  return spec;
}

// GPUs 0, 1, ...; DRA gives their devices for extended resources.
inline MigSpec MigByClaims(int gpus, const std::string& product = "A100-40GB") {
  MigSpec spec = DynamicMig(gpus, product);
  spec.allocator = MigAllocator::kKubeScheduler;
  return spec;
}

// GPUs 0, 1, ... that have these instances each; the kubelet picks.
inline MigSpec StaticMig(int gpus, const std::vector<ProfileAt>& instances,
                         const std::string& product = "A100-40GB") {
  MigSpec spec = DynamicMig(gpus, product);
  spec.dynamic = false;
  spec.knowledge = MigKnowledge::kCounts;
  spec.allocator = MigAllocator::kFirstFit;
  for (MigGpu& gpu : spec.gpus) gpu.instances = SetOf(*spec.product, instances);
  return spec;
}

inline const std::vector<ProfileAt> kSevenSmall = {{"1g.5gb", 0}, {"1g.5gb", 1}, {"1g.5gb", 2},
                                                   {"1g.5gb", 3}, {"1g.5gb", 4}, {"1g.5gb", 5},
                                                   {"1g.5gb", 6}};
inline const std::vector<ProfileAt> kBalanced = {
    {"1g.5gb", 2}, {"1g.5gb", 3}, {"2g.10gb", 0}, {"3g.20gb", 4}};

}  // namespace berth::test
