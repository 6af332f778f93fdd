// SPDX-License-Identifier: Apache-2.0
//
// RoomFor: room for pods that wait, one after the other; each has a plan of its own (make_room.h),
// on the cluster as the plans before it leave it.
//
// A unit is a pod, or the members of a gang that start together: as many as it cannot do without,
// the lowest ranks first, in one domain of the level that it requires. A gang that has begun is
// placed pod by pod. A pod that was moved for one unit, or placed, is not moved for the next one.
// Pods whose places are planned keep them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/values/pod_request.h"
#include "scoring/room/make_room.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// So many units are planned for; the others are named.
inline constexpr std::size_t kMostUnits = 50;
// Larger gangs have no plan: the search holds what is left to place once for each pod placed.
inline constexpr std::size_t kMostUnitPods = 256;

struct RoomWish {
  RoomAsk ask;                       // without a goal
  std::span<const PodRequest> pods;  // that wait, those first that are placed first; UIDs unique
  int idle_nodes = 0;                // beside these, planned for first; 0: none
  std::string model = {};            // of these; empty: any
  std::function<bool(const PodRequest& pod)> starts_whole = {};  // as WhatIfAsk
  std::shared_ptr<const DomainTree> tree = nullptr;              // nullptr: no levels
  // Called before each unit: limits of its search; nothing: there is no time for more.
  std::function<std::optional<SearchLimits>()> limits = {};
};

struct RoomUnit {
  std::string name = {};  // "ml/train", of the pod or of the gang; "": the idle nodes
  bool is_gang = false;
  std::vector<std::size_t> pods = {};  // of the wish, in the order of the plan's places
  std::string problem = {};            // why there is no plan, if none was looked for
  RoomPlan plan = {};
};

struct RoomUnits {
  std::vector<RoomUnit> units;
  std::size_t beyond = 0;  // more units, which nothing was planned for
  WallTime now = {};       // of the plans
};

RoomUnits RoomFor(const RoomWish& wish);

}  // namespace berth
