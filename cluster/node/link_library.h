// SPDX-License-Identifier: Apache-2.0
//
// LinkLibrary: the wirings that the nodes of a cluster have, each once.
//
// Thousands of nodes have a few wirings. Nodes with the same links share one GpuLinks, and wirings
// that differ only in the numbering of their GPUs share its tables. Building the tables of a new
// wiring takes well under a millisecond for 8 GPUs and a fraction of a second for 16. It is done
// here, so that no decision waits for it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "topology/links/gpu_links.h"

namespace berth {

// Any thread may call it.
class LinkLibrary {
 public:
  // Few clusters have more wirings than this. Beyond it the library forgets all of them; they live
  // on in their nodes.
  static constexpr std::size_t kMostWirings = 256;

  // `product`: as in SpeedsFor (topology/links/product_links.h).
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
