// SPDX-License-Identifier: Apache-2.0
//
// What a machine prints of the links of its GPUs, as a file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/links/link_matrix.h"

namespace berth {

// A file, recognised by how it begins: '<' is NCCL topology XML, '{' JSON (wire::ReadTopology),
// else `nvidia-smi topo -m`. Error: kInvalidArgument, with line, element or path, and the cell.
Result<LinkMatrix> ParseTopologyFile(std::string_view text);
// The same of a file; "-" is standard input. The file stands first in an error.
Result<LinkMatrix> ReadTopologyFile(const std::string& file);

}  // namespace berth
