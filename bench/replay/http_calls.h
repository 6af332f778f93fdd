// SPDX-License-Identifier: Apache-2.0
//
// Calls of Berth's routes by a client.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "bench/http/http_client.h"

namespace berth::http {

// The body of the answer. Error: kUnavailable when the exchange fails or the status is not 200.
inline Result<std::string> Called(HttpClient& client, const char* method, std::string_view path,
                                  const std::string& body) {
  BERTH_TRY(HttpClient::Answer answer, client.Ask(method, path, body));
  if (answer.status == 200) return std::move(answer.body);
  return Fail(Errc::kUnavailable, std::string(path) + ": status " + std::to_string(answer.status) +
                                      ": " + answer.body.substr(0, 200));
}

inline Result<std::string> Post(HttpClient& client, std::string_view path,
                                const std::string& body) {
  return Called(client, "POST", path, body);
}

inline Result<std::string> Get(HttpClient& client, std::string_view path) {
  return Called(client, "GET", path, "");
}

}  // namespace berth::http
