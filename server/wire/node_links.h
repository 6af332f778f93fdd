// SPDX-License-Identifier: Apache-2.0
//
// The links of a node's GPUs, from the best of what the node has:
//
//   1. annotation berth.dev/topology (topology_json.h)
//   2. HAMi's annotations (hami_links.h), which also name the GPUs' UUIDs
//   3. Koordinator's Device: another object, put in its place by server/dialects/koordinator
//   4. the product catalogue (topology/links/product_links.h), by GPU model and number
//
// and not known where there is none of these. What cannot be read, or speaks of another number of
// GPUs than the node has, is told and passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/link_library.h"
#include "topology/links/gpu_links.h"

namespace berth::wire {

inline constexpr std::string_view kCatalogueSource = "product catalogue";

// The annotations' texts; empty = not there.
struct LinkAnnotations {
  std::string topology;
  std::string hami_scores;
  std::string hami_register;

  // Where the text of that annotation belongs; nullptr for one that says nothing of links.
  std::string* Find(std::string_view key);
};

struct NodeLinks {
  GpuLinks links;
  std::vector<std::string> uuids;  // by index; empty = not known
  std::string problem;             // what was passed over, with its key; empty = nothing
};

NodeLinks ReadNodeLinks(const LinkAnnotations& annotations, std::string_view product, int gpus,
                        LinkLibrary& library);

}  // namespace berth::wire
