// SPDX-License-Identifier: Apache-2.0
//
// GpuCells: what each GPU of a node is to someone who looks at the whole cluster, a character per
// GPU, so that all GPUs of a large cluster are a short text.
//
//   '.'        idle, and can be given now
//   'u'        idle, and of no use: the node takes no pods, its GPUs are another scheduler's, or it
//              has less CPU or memory left than any pod with a GPU asks for
//   'x'        out of order
//   '#'        held whole, by a pod or a claim
//   'g'        held whole, by a pod of a group
//   'h'        held for a pod of a group that has not begun
//   '1'..'9'   held in parts: about so many tenths; 'a': wholly held in parts
//
// After the GPUs that are given whole come the partitioned ones, in brackets, a character per unit
// of memory: 'T' and 't' (the following units) a device that is held, 'F' and 'f' one that is free,
// '.' nothing is cut there. "[TtttFf.F]" is a 1/2 of the GPU at 0, a 1/4 at 4 and a 1/8 at 7.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/node/node.h"

namespace berth {

// For a picture: a pod with a GPU asks for no less than this.
inline constexpr std::int64_t kLeastCpuMilli = 1000;
inline constexpr std::int64_t kLeastMemoryBytes = std::int64_t{1} << 30;

// Whether pods with GPUs may go to the node: it is ready and not cordoned, and its kubelet takes
// them.
bool TakesPods(const NodeSpec& spec);

// Whether idle GPUs of the node are of no use to anybody at present.
bool IsUseless(const Node& node);

std::string GpuCells(const Node& node);

}  // namespace berth
