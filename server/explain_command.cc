// SPDX-License-Identifier: Apache-2.0
#include "server/explain_command.h"

#include <string_view>
#include <utility>

#include "base/dns_name.h"
#include "server/http/http_client.h"

namespace berth {
namespace {

// HOST:PORT of the address.
Result<std::string> AddressOf(const std::string& server) {
  std::string_view address = server;
  constexpr std::string_view kHttp = "http://";
  if (address.starts_with(kHttp)) address.remove_prefix(kHttp.size());
  while (address.ends_with('/')) address.remove_suffix(1);
  if (address.find('/') != std::string_view::npos || address.rfind(':') == std::string_view::npos) {
    return Invalid("--server: want http://HOST:PORT, got \"" + server +
                   "\"; behind mutual TLS, server.debugListen has an address without it");
  }
  return std::string(address);
}

// What a server says of an error: {"error":"TEXT"}.
std::string ErrorIn(const http::HttpClient::Answer& answer) {
  constexpr std::string_view kBegin = R"({"error":")", kEnd = R"("})";
  std::string_view text = answer.body;
  if (text.starts_with(kBegin) && text.ends_with(kEnd)) {
    text.remove_prefix(kBegin.size());
    text.remove_suffix(kEnd.size());
    return std::string(text);
  }
  return "status " + std::to_string(answer.status);
}

Result<std::string> Fetch(const ExplainFlags& flags, const std::string& path) {
  BERTH_TRY(const std::string address, AddressOf(flags.server));
  BERTH_TRY(http::HttpClient client, http::HttpClient::Connect(address));
  BERTH_TRY(http::HttpClient::Answer answer, client.Ask("GET", path + (flags.json ? "" : "?text")));
  if (answer.status == 200) return std::move(answer.body);
  return Fail(answer.status == 404 ? Errc::kNotFound : Errc::kUnavailable,
              flags.server + ": " + ErrorIn(answer));
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
