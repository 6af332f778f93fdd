// SPDX-License-Identifier: Apache-2.0
#include "server/commands/explain_command.h"

#include <utility>

#include "base/dns_name.h"
#include "server/commands/ask_server.h"
#include "server/commands/cluster_of_file.h"
#include "server/why/explain_pages.h"

namespace berth {
namespace {

using AnswerPage = http::HttpResponse (*)(const Live& live, const std::string& path,
                                          const std::string& query);

// page: what the server answers that path with.
Result<std::string> Fetch(const ExplainFlags& flags, const std::string& path, AnswerPage page) {
  if (flags.cluster.empty()) return AskServer(flags.at, "GET", path + (flags.json ? "" : "?text"));
  BERTH_TRY(const auto cluster, ClusterOfFile::Load(flags.cluster, flags.config));
  http::HttpResponse answer = page(cluster->live(), path, flags.json ? "" : "text");
  return BodyOf(answer.status, std::move(answer.body), flags.cluster);
}

// NAMESPACE/NAME.
Result<std::string> FullName(const ExplainFlags& flags) {
  std::string name = flags.name;
  if (name.find('/') == std::string::npos) {
    std::string space = flags.namespace_name;
    if (space.empty() && flags.at.cluster) {
      BERTH_TRY(space, CurrentNamespace(*flags.at.cluster));
    }
    if (!space.empty()) name.insert(0, space + "/");
  }
  const std::size_t slash = name.find('/');
  if (slash != std::string::npos && IsDnsLabel(name.substr(0, slash)) &&
      IsDnsSubdomain(name.substr(slash + 1))) {
    return name;
  }
  return Invalid("want NAMESPACE/NAME, or NAME with --namespace, got \"" + flags.name + "\"");
}

}  // namespace

Result<std::string> ExplainPodCommand(const ExplainFlags& flags) {
  BERTH_TRY(const std::string name, FullName(flags));
  return Fetch(flags, "/debug/pods/" + name, ExplainPodPage);
}

Result<std::string> ExplainNodeCommand(const ExplainFlags& flags) {
  if (!IsDnsSubdomain(flags.name)) {
    return Invalid("want the name of a node, got \"" + flags.name + "\"");
  }
  return Fetch(flags, "/debug/nodes/" + flags.name, ExplainNodePage);
}

Result<std::string> ExplainGangCommand(const ExplainFlags& flags) {
  BERTH_TRY(const std::string name, FullName(flags));
  return Fetch(flags, "/debug/gangs/" + name, ExplainGangPage);
}

Result<std::string> TopCommand(const ExplainFlags& flags) {
  return Fetch(flags, "/debug/top", TopPage);
}

}  // namespace berth
