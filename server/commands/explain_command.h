// SPDX-License-Identifier: Apache-2.0
//
// `berth explain` and `berth top`: they fetch a page of a running Berth and print it
// (server/why/explain_pages.h).
#pragma once

#include <string>

#include "base/result.h"
#include "server/commands/ask_server.h"

namespace berth {

struct ExplainFlags {
  ServerAddress at;
  std::string name;            // [NAMESPACE/]NAME of a pod or group, NAME of a node
  std::string namespace_name;  // of a pod or group without; empty: that of kubectl's context
  bool json = false;           // else text
};

// What is to be printed. Error: kInvalidArgument for a name or an address that is none, kNotFound
// where the server knows nothing of that name, kUnavailable.
Result<std::string> ExplainPodCommand(const ExplainFlags& flags);
Result<std::string> ExplainNodeCommand(const ExplainFlags& flags);
Result<std::string> ExplainGangCommand(const ExplainFlags& flags);
Result<std::string> TopCommand(const ExplainFlags& flags);

}  // namespace berth
