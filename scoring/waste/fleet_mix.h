// SPDX-License-Identifier: Apache-2.0
//
// The part of a learned mix that can be placed on a fleet. Pods may name any GPU model; a model
// that no node has means nothing, and everything built from the mix would pay for it.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "scoring/waste/card_worth.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// The number of kinds of nodes that are distinguished: simulations of a fleet repeat for each of
// them. If a model has more kinds, similar kinds represent each other; if there are more models,
// those with the most nodes count.
constexpr std::size_t kMostKinds = 256, kMostFleetModels = 64;

using FleetModels = std::set<std::string, std::less<>>;
FleetModels ModelsOf(const Fleet& fleet);

// The classes restricted to these models; classes that are then alike are merged. A class that
// names models, but none of these, is left out: its pods can be placed nowhere. Weights sum to 1
// again.
RequestMix OnFleet(RequestMix mix, const FleetModels& models);

// What compute and memory are worth to the mix. Memory is not counted if the fleet's is unknown.
CardWorth WorthOf(const RequestMix& mix, const Fleet& fleet);

}  // namespace berth
