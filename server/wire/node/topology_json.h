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

#include "base/result.h"
#include "server/wire/json/strict_json.h"
#include "topology/links/link_matrix.h"

namespace berth::wire {

inline constexpr std::string_view kTopologyAnnotation = "berth.dev/topology";

// The annotation, where it has a "version", or {"gpus": n, "pcie": [[..]], "nvlinks": [[..]]}.
// Requires: an object. Error: kInvalidArgument, with the path and the cell.
Result<LinkMatrix> ReadTopology(const Json& json);
// The same of a text of at most kMaxTopologyBytes.
Result<LinkMatrix> ParseTopologyJson(std::string_view text);

// Error: kInvalidArgument where the links are of more than 36 kinds.
Result<std::string> TopologyAnnotation(const LinkMatrix& matrix);

// Error: kInvalidArgument with the path of the field.
Result<LinkMatrix> ParseTopologyAnnotation(std::string_view text);

}  // namespace berth::wire
