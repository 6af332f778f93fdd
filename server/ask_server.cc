// SPDX-License-Identifier: Apache-2.0
#include "server/ask_server.h"

#include <string_view>
#include <utility>

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
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) {
    return "status " + std::to_string(answer.status);
  }
  text.remove_prefix(kBegin.size());
  text.remove_suffix(kEnd.size());
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    plain += text[is_escaped ? ++i : i];
  }
  return plain;
}

Errc CodeOf(int status) {
  if (status == 404) return Errc::kNotFound;
  return status == 400 || status == 413 ? Errc::kInvalidArgument : Errc::kUnavailable;
}

}  // namespace

Result<std::string> AskServer(const std::string& server, const char* method,
                              const std::string& path, const std::string& body) {
  BERTH_TRY(const std::string address, AddressOf(server));
  BERTH_TRY(http::HttpClient client, http::HttpClient::Connect(address));
  BERTH_TRY(http::HttpClient::Answer answer, client.Ask(method, path, body));
  if (answer.status == 200) return std::move(answer.body);
  return Fail(CodeOf(answer.status), server + ": " + ErrorIn(answer));
}

}  // namespace berth
