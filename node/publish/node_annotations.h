// SPDX-License-Identifier: Apache-2.0
//
// The annotations of a Node that the agent keeps: what is there, what should be there, and the
// patch between the two.
//
// Who wrote a value is read from managedFields. berth.dev/topology and berth.dev/mig may be written
// by people, who can say what a machine does not know (GPUs that are partitioned when a pod comes,
// links behind a hypervisor): such a value stays. The other keys are the agent's alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::node {

inline constexpr std::string_view kFieldManager = "berth-node";

// A key of WantedAnnotations: a value, or nullopt = not there. A key that is not in the map stays.
using WantedAnnotations = std::map<std::string, std::optional<std::string>>;

struct NodeAnnotations {
  std::map<std::string, std::string> values;  // of the keys that the agent may write
  std::set<std::string> ours;                 // those of them that the agent wrote last
  bool mig_single = false;                    // label nvidia.com/mig.strategy: single
};

// Of a Node of the API server. Error: kInvalidArgument.
Result<NodeAnnotations> ReadNodeAnnotations(std::string_view node_json);

// The body of a merge patch; nullopt where nothing differs. `kept`: keys with a value of somebody
// else that differs and stays.
std::optional<std::string> AnnotationPatch(const NodeAnnotations& now,
                                           const WantedAnnotations& wanted,
                                           std::vector<std::string>& kept);

}  // namespace berth::node
