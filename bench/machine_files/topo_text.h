// SPDX-License-Identifier: Apache-2.0
//
// The text of `nvidia-smi topo -m`, `rocm-smi --showtopotype`, `amd-smi topology` (its table of
// link types) or `xpu-smi topology -m`, also as people paste it.
//
// Cells are consumed by pattern, exactly as many as the header names devices, because splitting at
// white space fails where columns are glued ("SYSSYS"). The reader accepts ANSI escapes, lines that
// begin with '#' or '>', glued header names, Markdown tables, affinity columns that are empty or
// glued to the next, NIC rows, the NIC legend, matrices whose last rows are missing, and a `topo
// -p2p` table that follows.
//
// Warnings (LinkMatrix::warnings): "ansi", "comment-prefix", "markdown-table", "glued-header",
// "glued-cells", "rows-missing: ...", "no-peer-access: ...".
#pragma once

#include <string_view>

#include "base/result.h"
#include "topology/links/link_matrix.h"

namespace berth {

// Error: kInvalidArgument "line 4, GPU2 to GPU5: want X, NV#, ..., got \"NV\"", or what is missing.
// Time and memory are linear in the text, which may have kMaxTopologyBytes.
Result<LinkMatrix> ParseTopoText(std::string_view text);

}  // namespace berth
