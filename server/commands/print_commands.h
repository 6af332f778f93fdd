// SPDX-License-Identifier: Apache-2.0
//
// The commands that print an answer: `berth config`, `berth snapshot`, and `berth explain`, `top`
// and `plan`, which ask a running Berth, or one that serves a file (server/why/explain_pages.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/load.h"
#include "server/commands/ask_server.h"

namespace berth {

// `berth config check|print`: a configuration from a file, from standard input, or from the
// manifest of a ConfigMap. `file` "-" is standard input. Error: an unreadable file, or a ConfigMap
// without configuration.
Result<ConfigFindings> CheckConfigFile(const std::string& file);

// Error: as CheckConfigFile, or the first problem.
Result<Config> ConfigForPrint(const std::string& file);

struct ExplainFlags {
  ServerAddress at;
  std::string cluster;         // a file used instead of the server; empty: ask the server
  std::string config;          // BerthConfiguration for `cluster`; empty: built in
  std::string name;            // [NAMESPACE/]NAME of a pod or gang, NAME of a node, "": all nodes
  std::string namespace_name;  // if `name` has none; empty: that of kubectl's context
  bool json = false;           // else text
};

// The text to print. Error: kInvalidArgument for a malformed name or address, kNotFound if the
// server does not know the name, kUnavailable.
Result<std::string> ExplainPodCommand(const ExplainFlags& flags);
Result<std::string> ExplainNodeCommand(const ExplainFlags& flags);
Result<std::string> ExplainGangCommand(const ExplainFlags& flags);
Result<std::string> TopCommand(const ExplainFlags& flags);
Result<std::string> WaitingCommand(const ExplainFlags& flags);
// The file `cluster` for a report of a fault (server/wire/file/cluster_file.h).
Result<std::string> SnapshotCommand(const ExplainFlags& flags);

// `berth plan`: where the pods of manifests would be placed, on the cluster of a running Berth or
// of a file (docs/plan.md).
struct PlanFlags {
  std::vector<std::string> files;  // YAML or JSON; "-" is standard input; empty: waiting pods
  std::string namespace_name;      // of objects that name none; empty: that of kubectl's context
  int grow = 0;                    // try 1 to this many more nodes of each pool; 0: not requested
  std::vector<std::string> machine_types;  // with grow: machine types of new pools
  bool make_room = false;                  // which pods to move, so that others have room
  std::vector<std::string> room_for;       // with make_room: pods or gangs; empty: all that wait
  int idle_nodes = 0;                      // with make_room: this many nodes without GPU pods...
  std::string model;                       // ...of this GPU model; empty: any
  ServerAddress at;
  std::string cluster;  // a file used instead of the server; empty: ask the server
  std::string config;   // BerthConfiguration for `cluster`; empty: built in
  // Pairs: the number of nodes to add, and the node of the cluster or the file with a Node to copy.
  std::vector<int> add_nodes;
  std::vector<std::string> like;
  std::vector<std::string> remove;
  bool json = false;  // else text
};

// Whether an argument of --like names a file and not a node of the cluster: "-", a name that ends
// in .yaml, .yml or .json or has a '/', or the name of an existing file.
bool IsShapeFile(const std::string& like);

// The text to print. Error: kInvalidArgument for wrong flags, files or manifests, kNotFound for a
// missing file or node, kUnavailable.
Result<std::string> PlanCommand(const PlanFlags& flags);

}  // namespace berth
