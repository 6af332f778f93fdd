// SPDX-License-Identifier: Apache-2.0
//
// SupplyLedger: the nodes' amounts of each good of a market, and so its prices.
//
// A memo like the EvaluationTable: a function of the snapshot, updated by recounting only the nodes
// that are not the same objects as last time. Not thread-safe; ProfileTables guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/waste/market.h"

namespace berth {

class SupplyLedger {
 public:
  // Requires: the market outlives the ledger.
  explicit SupplyLedger(const Market& market)
      : market_(market), sums_(market.goods()), counted_(market.goods()) {}

  // One price per good.
  const std::vector<double>& PricesIn(const std::shared_ptr<const Snapshot>& snapshot);

 private:
  void CountAll(const Snapshot& snapshot);
  // counted_ is what the node has.
  void Book(NodeIndex index);

  const Market& market_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<int> amounts_;        // [node][good]
  std::vector<std::int64_t> sums_;  // [good]
  std::vector<int> counted_;
  std::vector<double> prices_;
};

}  // namespace berth
