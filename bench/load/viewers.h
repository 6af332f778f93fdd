// SPDX-License-Identifier: Apache-2.0
//
// The time of filter, prioritize and bind with viewers of the live page, compared with none. A
// viewer behaves like a browser: every three seconds it requests what the page shows, compressed,
// with the ETag of the version that it has. Each answer is the whole, names of nodes too.
#pragma once

#include <cstddef>

namespace berth::load {

// Alternates between runs without and with viewers, so that other load of the machine affects both.
void MeasureViewers(std::size_t nodes, int viewers);

}  // namespace berth::load
