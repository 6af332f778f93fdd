// SPDX-License-Identifier: Apache-2.0
//
// NodeClaims: what ResourceClaims hold on each node and what pods can get there by new ones, as the
// last events of each source had it. Also of nodes that are not known (yet). ClusterState guards
// it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/cluster_event.h"

namespace berth {

class NodeClaims {
 public:
  // Returns whether that changed anything.
  bool Put(const GpusClaimed& claimed);
  bool Put(const GpusOffered& offered);

  // What claims hold on the node, of all sources; nullptr: nothing.
  [[nodiscard]] Node::Claims HeldOn(const std::string& node) const;
  // The spec with what is offered on its node, unless the Node publishes MIG devices of its own.
  [[nodiscard]] NodeSpec WithOffers(NodeSpec spec) const;

 private:
  struct Held {
    std::map<std::string, std::vector<ClaimedGpu>> by_source;
    Node::Claims all;  // of these, one after the other
  };
  std::unordered_map<std::string, Held> held_;
  std::unordered_map<std::string, NodeMig> offered_;
};

}  // namespace berth
