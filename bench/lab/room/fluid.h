// SPDX-License-Identifier: Apache-2.0
//
// FluidService: what pods would get if every pod were moved freely and at no cost at any moment:
// the nodes of a model are one pool of GPUs, CPUs and memory. Nothing is lost to fragments.
//
// Pods start in the order in which they come, the higher priority first; one that finds no room
// keeps its pools from all that come after it, so that it waits for nothing but capacity. A
// reference, not a rule: what no way of moving pods can do, but for the order in which they start.
#pragma once

#include "bench/replay/time/service.h"
#include "bench/replay/workload.h"

namespace berth::replay {

Service FluidService(const Workload& workload, const Stream& stream);

}  // namespace berth::replay
