// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_report.h"

#include <bit>

namespace berth {
namespace {

void CountGpu(const MigSpec& spec, std::size_t gpu, MigSet taken, MigProductCount& count) {
  const MigProduct& product = *spec.product;
  (spec.dynamic ? count.dynamic_gpus : count.static_gpus) += 1;
  count.units += product.memory_units();
  count.taken_units += std::popcount(product.UnitsOf(taken));
  const MigSet free = spec.Free(gpu, taken);
  for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
    const MigSet placements = product.PlacementsOf(row);
    if (((taken | free) & placements) == 0 && !spec.dynamic) continue;
    const MigProfile& profile = product.rows()[static_cast<std::size_t>(row)].profile;
    MigProfileCount& counts = count.profiles[MigProfileName(profile)];
    counts.taken += std::popcount(taken & placements);
    counts.free += std::popcount(free & placements);
  }
}

}  // namespace

MigReport ReportMig(const Snapshot& snapshot) {
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
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
      CountGpu(spec, gpu, node.mig().taken()[gpu], report.products[spec.product->name()]);
    }
  }
  return report;
}

}  // namespace berth
