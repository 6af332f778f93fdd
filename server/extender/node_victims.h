// SPDX-License-Identifier: Apache-2.0
//
// NodeVictims: the pods that would be evicted from one node. A value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

struct NodeVictims {
  std::string node;
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;  // as kube-scheduler counted them; passed on
  friend bool operator==(const NodeVictims&, const NodeVictims&) = default;
};

}  // namespace berth
