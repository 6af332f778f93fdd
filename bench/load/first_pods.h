// SPDX-License-Identifier: Apache-2.0
//
// The first pods that a fresh server meets: whole GPUs and shares of them with different asks for
// CPU, each filtered, prioritized and bound. A mix is learned from them, and in the beginning an
// epoch of it ends with every few pods.
#pragma once

#include <cstddef>

namespace berth::load {

void MeasureFirstPods(std::size_t nodes, std::size_t pods);

}  // namespace berth::load
