// SPDX-License-Identifier: Apache-2.0
//
// GangMembers: how many pods of each gang are on each node. ClusterState guards it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cluster/values/gang.h"

namespace berth {

class GangMembers {
 public:
  // A pod of the gang is on the node / leaves it. gang: empty = the pod is in none.
  void Add(const GangId& gang, const std::string& node);
  void Remove(const GangId& gang, const std::string& node);

  // How many pods of the gang there are on all nodes.
  [[nodiscard]] std::size_t Count(const GangId& gang) const;
  // The names of the nodes on which they are, sorted.
  [[nodiscard]] std::vector<std::string> NodesOf(const GangId& gang) const;

 private:
  std::map<GangId, std::map<std::string, std::size_t>> pods_;  // [gang][node]
};

}  // namespace berth
