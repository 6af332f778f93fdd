// SPDX-License-Identifier: Apache-2.0
//
// `berth plan`: where the pods of some manifests would go, on the cluster of a running Berth or on
// one that is read from a file (docs/plan.md).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/ask_server.h"

namespace berth {

struct PlanFlags {
  std::vector<std::string> files;  // YAML or JSON; "-" is standard input
  ServerAddress at;
  std::string cluster;  // a file in the place of the server; empty: the server is asked
  std::string config;   // BerthConfiguration for it; empty: built in
  int add_nodes = 0;
  std::string like;  // the node of which they are copies
  std::vector<std::string> remove;
  bool json = false;  // else text
};

// What is to be printed. Error: kInvalidArgument for what is wrong with flags, files or manifests,
// kNotFound for a file or a node that is not there, kUnavailable.
Result<std::string> PlanCommand(const PlanFlags& flags);

}  // namespace berth
