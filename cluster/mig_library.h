// SPDX-License-Identifier: Apache-2.0
//
// MigLibrary: the products of the MIG GPUs of a cluster, each once, so that what is computed of a
// product (scoring/mig/mig_tables.h) is computed once for all nodes that have it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "topology/mig/mig_product.h"

namespace berth {

// Any thread may call it.
class MigLibrary {
 public:
  // Beyond that all are forgotten, and live on in the nodes that have them.
  static constexpr std::size_t kMostProducts = 256;

  // A row of the catalogue, which lives as long as the process.
  static std::shared_ptr<const MigProduct> Catalogued(const MigProduct& product);
  // The product of that value.
  std::shared_ptr<const MigProduct> Keep(MigProduct product) BERTH_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<const MigProduct>> products_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
