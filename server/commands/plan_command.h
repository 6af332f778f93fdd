// SPDX-License-Identifier: Apache-2.0
//
// `berth plan`: where the pods of some manifests would go, on the cluster of a running Berth or on
// one that is read from a file (docs/plan.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/commands/ask_server.h"

namespace berth {

struct PlanFlags {
  std::vector<std::string> files;  // YAML or JSON; "-" is standard input; none: pods that wait
  int grow = 0;  // so many nodes of each pool, one after the other; 0: that is not asked
  std::vector<std::string> machine_types;  // with grow: of pools that have no node yet
  ServerAddress at;
  std::string cluster;  // a file in the place of the server; empty: the server is asked
  std::string config;   // BerthConfiguration for it; empty: built in
  // Pairs: so many nodes come, like that one of the cluster, or like the Node of that file.
  std::vector<int> add_nodes;
  std::vector<std::string> like;
  std::vector<std::string> remove;
  bool json = false;  // else text
};

// Whether an argument of --like names a file and not a node of the cluster: "-", what ends in
// .yaml, .yml or .json, what has a '/', and what is the name of a file that is there.
bool IsShapeFile(const std::string& like);

// What is to be printed. Error: kInvalidArgument for what is wrong with flags, files or manifests,
// kNotFound for a file or a node that is not there, kUnavailable.
Result<std::string> PlanCommand(const PlanFlags& flags);

}  // namespace berth
