// SPDX-License-Identifier: Apache-2.0
//
// The time of filter and prioritize over HTTP, as a ratio to a bare Beast server that reads the
// same bytes and writes the same answers. Both are asked in turn, over one keep-alive connection
// each.
#pragma once

#include <cstddef>

namespace berth::load {

void MeasureRatio(std::size_t nodes, std::size_t pods);

}  // namespace berth::load
