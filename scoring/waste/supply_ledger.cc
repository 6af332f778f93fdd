// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/supply_ledger.h"

#include <algorithm>

namespace berth {

const std::vector<double>& SupplyLedger::PricesIn(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == snapshot_) return prices_;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) { Count(i, snapshot->node(i)); });
  } else {
    amounts_.assign(snapshot->size() * sums_.size(), 0);
    std::ranges::fill(sums_, 0);
    for (NodeIndex i = 0; i < snapshot->size(); ++i) Count(i, snapshot->node(i));
  }
  snapshot_ = snapshot;
  prices_ = market_.Prices(sums_);
  return prices_;
}

void SupplyLedger::Count(NodeIndex index, const Node& node) {
  market_.Supply(node, counted_);
  int* const before = amounts_.data() + index * sums_.size();
  for (std::size_t good = 0; good < sums_.size(); ++good) {
    sums_[good] += counted_[good] - before[good];
    before[good] = counted_[good];
  }
}

}  // namespace berth
