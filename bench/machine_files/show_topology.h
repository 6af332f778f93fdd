// SPDX-License-Identifier: Apache-2.0
//
// `berth-replay topology show|annotate`: the links of a machine as Berth reads them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "topology/links/link_matrix.h"

namespace berth {

struct ShownTopology {
  std::string file;  // "-": standard input
  bool json = false;
};

// As `berth-replay topology show --json` prints it.
std::string TopologyJson(const LinkMatrix& matrix);

// GPUs joined by a fabric, transitively; a GPU without is alone. Each sorted, in the order of their
// first GPU.
std::vector<std::vector<int>> IslandsOf(const LinkMatrix& matrix);

// Graphviz: fabric links, and the fastest of the PCIe relations better than SYS.
std::string GraphvizOf(const LinkMatrix& matrix);

// The text to print. Error: malformed input, with file and place.
Result<std::string> ShowTopology(const ShownTopology& flags);
Result<std::string> AnnotateTopology(const ShownTopology& flags);

}  // namespace berth
