// SPDX-License-Identifier: Apache-2.0
//
// The first pods on a fresh server: whole GPUs and shares with different CPU requests, each
// filtered, prioritized and bound. The server learns the mix from them, and in the beginning an
// epoch of the mix ends every few pods.
#pragma once

#include <cstddef>

namespace berth::load {

void MeasureFirstPods(std::size_t nodes, std::size_t pods);

}  // namespace berth::load
