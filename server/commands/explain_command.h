// SPDX-License-Identifier: Apache-2.0
//
// `berth explain` and `berth top`: they print a page of a running Berth, or that of a Berth which
// serves a file (server/why/explain_pages.h).
#pragma once

#include <string>

#include "base/result.h"
#include "server/commands/ask_server.h"

namespace berth {

struct ExplainFlags {
  ServerAddress at;
  std::string cluster;         // a file used instead of the server; empty: ask the server
  std::string config;          // BerthConfiguration for `cluster`; empty: built in
  std::string name;            // [NAMESPACE/]NAME of a pod or gang, NAME of a node
  std::string namespace_name;  // if `name` has none; empty: that of kubectl's context
  bool json = false;           // else text
};

// The text to print. Error: kInvalidArgument for a malformed name or address, kNotFound if the
// server does not know the name, kUnavailable.
Result<std::string> ExplainPodCommand(const ExplainFlags& flags);
Result<std::string> ExplainNodeCommand(const ExplainFlags& flags);
Result<std::string> ExplainGangCommand(const ExplainFlags& flags);
Result<std::string> TopCommand(const ExplainFlags& flags);

}  // namespace berth
