// SPDX-License-Identifier: Apache-2.0
//
// The links of a node's GPUs, from the best of what the node has:
//
//   1. what the node's annotations say, by the dialects in order of precedence
//   2. an object beside the Node, which an extension of the cluster puts in the catalogue's place
//   3. the product catalogue (topology/links/product_links.h), by GPU model and number
//
// and not known where there is none of these. What cannot be read, or has another number of GPUs
// than the node, is reported and passed over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/mig_library.h"
#include "server/wire/pod/dialect.h"
#include "topology/links/gpu_links.h"

namespace berth::wire {

inline constexpr std::string_view kCatalogueSource = "product catalogue";

struct NodeLinks {
  GpuLinks links;
  std::vector<std::string> uuids;  // by index; empty = not known
  std::string problem;             // what was passed over, with its key; empty = nothing
};

// Those of the product catalogue; unknown if it does not have the product.
GpuLinks CatalogueLinks(std::string_view product, int gpus, LinkLibrary& library);

NodeLinks ReadNodeLinks(const NodeReadings& readings, std::string_view product, int gpus,
                        LinkLibrary& library);

}  // namespace berth::wire
