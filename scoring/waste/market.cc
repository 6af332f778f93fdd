// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/market.h"

#include <algorithm>

#include "cluster/node/likeness_memo.h"

namespace berth {

const std::vector<double>& SupplyLedger::PricesIn(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == snapshot_) return prices_;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) {
      market_.Supply(snapshot->node(i), counted_);
      Book(i);
    });
  } else {
    CountAll(*snapshot);
  }
  snapshot_ = snapshot;
  prices_ = market_.Prices(sums_);
  return prices_;
}

void SupplyLedger::CountAll(const Snapshot& snapshot) {
  amounts_.assign(snapshot.size() * sums_.size(), 0);
  std::ranges::fill(sums_, 0);
  LikenessMemo<NodeIndex> known(snapshot.size());
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (const NodeIndex* const alike = known.Find(node)) {
      const auto theirs = amounts_.begin() + static_cast<std::ptrdiff_t>(*alike * sums_.size());
      std::copy_n(theirs, sums_.size(), counted_.begin());
    } else {
      market_.Supply(node, counted_);
      known.Put(node, i);
    }
    Book(i);
  }
}

void SupplyLedger::Book(NodeIndex index) {
  int* const before = amounts_.data() + index * sums_.size();
  for (std::size_t good = 0; good < sums_.size(); ++good) {
    sums_[good] += counted_[good] - before[good];
    before[good] = counted_[good];
  }
}

}  // namespace berth
