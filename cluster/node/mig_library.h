// SPDX-License-Identifier: Apache-2.0
//
// MigLibrary: the products of the MIG GPUs of a cluster, each once, so that tables of a product
// (scoring/mig/mig_tables.h) are computed once for all nodes that have it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "topology/links/gpu_links.h"
#include "topology/mig/mig_product.h"

namespace berth {

// Any thread may call it.
class MigLibrary {
 public:
  // Beyond it the library forgets all of them; they live on in their nodes.
  static constexpr std::size_t kMostProducts = 256;

  // A row of the catalogue, which lives as long as the process.
  static std::shared_ptr<const MigProduct> Catalogued(const MigProduct& product);
  // The product of that value.
  std::shared_ptr<const MigProduct> Keep(MigProduct product) BERTH_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<const MigProduct>> products_ BERTH_GUARDED_BY(mutex_);
};

// LinkLibrary: the wirings that the nodes of a cluster have, each once. Thousands of nodes have a
// few wirings.
// Any thread may call it.
class LinkLibrary {
 public:
  // Few clusters have more wirings than this. Beyond it the library forgets all of them; they live
  // on in their nodes.
  static constexpr std::size_t kMostWirings = 256;

  // `product`: as in SpeedsFor (topology/links/wiring.h).
  GpuLinks LinksOf(LinkMatrix matrix, std::string_view product, LinkOrigin origin)
      BERTH_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string product;
    GpuLinks links;
  };
  Mutex mutex_;
  WiringTables tables_ BERTH_GUARDED_BY(mutex_);
  std::vector<Entry> entries_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
