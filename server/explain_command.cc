// SPDX-License-Identifier: Apache-2.0
#include "server/explain_command.h"

#include "base/dns_name.h"
#include "server/ask_server.h"

namespace berth {
namespace {

Result<std::string> Fetch(const ExplainFlags& flags, const std::string& path) {
  return AskServer(flags.server, "GET", path + (flags.json ? "" : "?text"));
}

// NAMESPACE/NAME.
Status CheckFullName(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash != std::string::npos && IsDnsLabel(name.substr(0, slash)) &&
      IsDnsSubdomain(name.substr(slash + 1))) {
    return {};
  }
  return Invalid("want NAMESPACE/NAME, got \"" + name + "\"");
}

}  // namespace

Result<std::string> ExplainPodCommand(const ExplainFlags& flags) {
  BERTH_TRY_STATUS(CheckFullName(flags.name));
  return Fetch(flags, "/debug/pods/" + flags.name);
}

Result<std::string> ExplainNodeCommand(const ExplainFlags& flags) {
  if (!IsDnsSubdomain(flags.name)) {
    return Invalid("want the name of a node, got \"" + flags.name + "\"");
  }
  return Fetch(flags, "/debug/nodes/" + flags.name);
}

Result<std::string> ExplainGangCommand(const ExplainFlags& flags) {
  BERTH_TRY_STATUS(CheckFullName(flags.name));
  return Fetch(flags, "/debug/gangs/" + flags.name);
}

Result<std::string> TopCommand(const ExplainFlags& flags) { return Fetch(flags, "/debug/top"); }

}  // namespace berth
