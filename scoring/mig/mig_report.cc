// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_report.h"

#include <bit>

namespace berth {
namespace {

// all_profiles: includes those without taken or free devices.
void CountPlacements(const MigProduct& product, MigSet taken, MigSet free, bool all_profiles,
                     MigProductCount& count) {
  count.units += product.memory_units();
  for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
    const MigSet placements = product.PlacementsOf(row);
    if (((taken | free) & placements) == 0 && !all_profiles) continue;
    const MigProfile& profile = product.row(row).profile;
    MigProfileCount& counts = count.profiles[MigProfileName(profile)];
    counts.taken += std::popcount(taken & placements);
    counts.free += std::popcount(free & placements);
  }
}

void CountGpu(const MigSpec& spec, std::size_t gpu, MigSet taken, MigProductCount& count) {
  (spec.dynamic ? count.dynamic_gpus : count.static_gpus) += 1;
  count.taken_units += std::popcount(spec.product->UnitsOf(taken));
  CountPlacements(*spec.product, taken, spec.Free(gpu, taken), spec.dynamic, count);
}

void CountOffered(const OfferedGpu& gpu, MigProductCount& count) {
  count.dra_gpus += 1;
  count.taken_units +=
      gpu.whole ? gpu.product->memory_units() : std::popcount(gpu.product->UnitsOf(gpu.taken));
  CountPlacements(*gpu.product, gpu.taken, gpu.Free(), true, count);
}

}  // namespace

MigReport ReportMig(const Snapshot& snapshot, const MigOffers::ByNode& offers) {
  MigReport report;
  for (const MigTrouble trouble :
       {MigTrouble::kChanging, MigTrouble::kFailed, MigTrouble::kInvalid, MigTrouble::kStale}) {
    report.troubled_nodes[std::string(MigTroubleName(trouble))] = 0;
  }
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (!node.spec().mig.known()) continue;
    const MigSpec& spec = *node.spec().mig;
    if (spec.trouble != MigTrouble::kNone) {
      ++report.troubled_nodes[std::string(MigTroubleName(spec.trouble))];
    }
    if (spec.by_claims()) continue;  // they are among the offers
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
      CountGpu(spec, gpu, node.mig().taken()[gpu], report.products[spec.product->name()]);
    }
  }
  for (const auto& [node, gpus] : offers) {
    for (const OfferedGpu& gpu : *gpus) CountOffered(gpu, report.products[gpu.product->name()]);
  }
  return report;
}

}  // namespace berth
