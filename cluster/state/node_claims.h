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
  bool Put(const SliceGpusOffered& offered);

  // What claims hold on the node, of all sources; nullptr: nothing.
  [[nodiscard]] Node::Claims HeldOn(const std::string& node) const;
  // The spec with what is offered on its node, unless the Node publishes MIG devices, or GPUs, of
  // its own. A spec that this made may come again.
  [[nodiscard]] NodeSpec WithOffers(NodeSpec spec);
  // The node is gone; what is offered there stays.
  void Forget(const std::string& node) { said_.erase(node); }

 private:
  struct Held {
    std::map<std::string, std::vector<ClaimedGpu>> by_source;
    Node::Claims all;  // of these, one after the other
  };
  std::unordered_map<std::string, Held> held_;
  std::unordered_map<std::string, NodeMig> offered_;
  std::unordered_map<std::string, SliceGpus> in_slices_;
  // What the Node said, of nodes that got GPUs here.
  std::unordered_map<std::string, NodeSpec> said_;
};

}  // namespace berth
