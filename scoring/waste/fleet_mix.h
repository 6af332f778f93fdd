// SPDX-License-Identifier: Apache-2.0
//
// What of a learned mix can come true on a fleet. Pods name GPU models as they like; those that no
// node has mean nothing, and whatever is built from the mix would pay for each of them.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// So many kinds of nodes are told apart: whatever imagines a fleet does so for each of them. Of a
// model with more, kinds that are alike stand for each other; of more models those with the most
// nodes count.
constexpr std::size_t kMostKinds = 256, kMostFleetModels = 64;

using FleetModels = std::set<std::string, std::less<>>;
FleetModels ModelsOf(const Fleet& fleet);

// The classes with these models alone; classes that are then alike are one. A class that names
// models and none of these is left out: its pods are placed nowhere. Weights sum to 1 again.
RequestMix OnFleet(RequestMix mix, const FleetModels& models);

}  // namespace berth
