// SPDX-License-Identifier: Apache-2.0
//
// A machine's links as JSON and as the node annotation berth.dev/topology.
//
// The annotation, compact: {"version":1,"gpus":4,"cells":["NV12","SYS+NV2"],"links":"011/10/1",
// "numa":["0","0","1","1"],"cpus":["0-19",...]}. `links` are the rows of the upper triangle without
// its diagonal, one digit or small letter per pair, which counts in `cells` (0-9a-z). A cell is
// what nvidia-smi prints, with the PCIe relation before a '+' where both are known, and "?" where
// nothing is. `numa` and `cpus` are left out where nothing is known. With NICs also
// "nics":["mlx5_0"] and "nic_links", a row per GPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_library.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/dialect.h"
#include "topology/links/gpu_links.h"
#include "topology/links/link_matrix.h"

namespace berth::wire {

inline constexpr std::string_view kTopologyAnnotation = "berth.dev/topology";

// The annotation, where it has a "version", or {"gpus": n, "pcie": [[..]], "nvlinks": [[..]]}.
// Requires: an object. Error: kInvalidArgument, with the path and the cell.
Result<LinkMatrix> ReadTopology(const Json& json);

// Error: kInvalidArgument where the links are of more than 36 kinds.
Result<std::string> TopologyAnnotation(const LinkMatrix& matrix);

// Error: kInvalidArgument with the path of the field.
Result<LinkMatrix> ParseTopologyAnnotation(std::string_view text);

// The links of a node's GPUs, from the best of what the node has:
//
//   1. what the node's annotations say, by the dialects in order of precedence
//   2. an object beside the Node, which an extension of the cluster puts in the catalogue's place
//   3. the product catalogue (topology/links/wiring.h), by GPU model and number
//
// and not known where there is none of these. What cannot be read, or has another number of GPUs
// than the node, is reported and passed over.

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
