// SPDX-License-Identifier: Apache-2.0
//
// Filter, prioritize and bind while people have the live page open, beside the same while nobody
// has. A viewer is a browser as far as the server notices: every three seconds it asks for what the
// page shows, compressed, with the tag of what it has.
#pragma once

#include <cstddef>

namespace berth::load {

// By turns without and with viewers, so that whatever else the machine does meets both alike.
void MeasureViewers(std::size_t nodes, int viewers);

}  // namespace berth::load
