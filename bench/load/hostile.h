// SPDX-License-Identifier: Apache-2.0
//
// Pods and requests that are built to cost as much as possible: how long each occupies the
// answering thread, and how long the next plain pod and /metrics take after it.
#pragma once

#include <cstddef>

namespace berth::load {

void MeasureHostile(std::size_t nodes);

}  // namespace berth::load
