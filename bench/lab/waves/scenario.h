// SPDX-License-Identifier: Apache-2.0
//
// The scenarios: small fleets, and waves of equal pods that arrive there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

struct Wave {
  std::string name;  // "12 x 2 GPUs"
  std::vector<RequestShape> pods;
};

struct Scenario {
  std::string name;
  std::vector<NodeSpec> nodes;
  std::vector<Wave> waves;  // as they come
  bool stay = false;        // pods stay when the next wave comes; else they leave
};

// All scenarios, with sizes, CPU and order drawn with the seed.
std::vector<Scenario> DrawScenarios(std::uint64_t seed);

// The GPUs of the nodes that are wholly idle when the pods are packed as well as can be: the
// largest items first, tried with every number of nodes of each size. Requires: they fit the nodes.
int MostWholeGpus(const std::vector<NodeSpec>& nodes, const std::vector<RequestShape>& pods);

// The GPUs of a node, cut or not.
int GpusOf(const NodeSpec& node);

}  // namespace berth::replay
