// SPDX-License-Identifier: Apache-2.0
#include "cluster/groups/gang_members.h"

namespace berth {

void GangMembers::Add(const GangId& gang, const std::string& node) {
  if (!gang.empty()) ++pods_[gang][node];
}

void GangMembers::Remove(const GangId& gang, const std::string& node) {
  const auto nodes = pods_.find(gang);
  if (nodes == pods_.end()) return;
  const auto on_node = nodes->second.find(node);
  if (--on_node->second == 0) nodes->second.erase(on_node);
  if (nodes->second.empty()) pods_.erase(nodes);
}

std::size_t GangMembers::Count(const GangId& gang) const {
  const auto nodes = pods_.find(gang);
  if (nodes == pods_.end()) return 0;
  std::size_t count = 0;
  for (const auto& [node, pods] : nodes->second) count += pods;
  return count;
}

std::vector<std::string> GangMembers::NodesOf(const GangId& gang) const {
  std::vector<std::string> names;
  if (const auto nodes = pods_.find(gang); nodes != pods_.end()) {
    for (const auto& [node, pods] : nodes->second) names.push_back(node);
  }
  return names;
}

}  // namespace berth
