// SPDX-License-Identifier: Apache-2.0
//
// GangMembers: how many pods of each gang are on each node. ClusterState guards it.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

class GangMembers {
 public:
  // A pod of the gang is on the node / leaves it. gang: "" = the pod is in none.
  void Add(const std::string& gang, const std::string& node);
  void Remove(const std::string& gang, const std::string& node);

  // How many pods of the gang there are on all nodes.
  [[nodiscard]] std::size_t Count(std::string_view gang) const;
  // The names of the nodes on which they are, sorted.
  [[nodiscard]] std::vector<std::string> NodesOf(std::string_view gang) const;

 private:
  std::map<std::string, std::map<std::string, std::size_t>, std::less<>> pods_;  // [gang][node]
};

}  // namespace berth
