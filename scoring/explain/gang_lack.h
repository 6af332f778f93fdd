// SPDX-License-Identifier: Apache-2.0
//
// WhyNoPlan: what the members of a gang lack that has no plan, in words.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// Why no plan is found, beside how many members have room.
struct GangLack {
  std::string text = {};    // "" = there is nothing more to say
  std::string member = {};  // the name of the member that no node takes; "" = each has one
  bool for_good = false;  // none can be found while the nodes are what they are, whatever pods end
};

// minimum: so many of the members, at least one, start together; roles: and so many of these.
// for_good_only: nothing else is looked for. Requires: the tree is that of the snapshot.
GangLack WhyNoPlan(const Snapshot& snapshot, const DomainTree& tree, const TopologyLevels& levels,
                   std::span<const std::shared_ptr<const PodRequest>> members, std::int64_t minimum,
                   std::span<const GangRole> roles = {}, bool for_good_only = false);

}  // namespace berth
