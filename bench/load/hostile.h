// SPDX-License-Identifier: Apache-2.0
//
// Pods and requests that were made to cost as much as they can: how long each keeps the thread that
// answers, and how long the next plain pod and /metrics take after it.
#pragma once

#include <cstddef>

namespace berth::load {

void MeasureHostile(std::size_t nodes);

}  // namespace berth::load
