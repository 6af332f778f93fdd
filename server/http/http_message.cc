// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_message.h"

namespace berth::http {
namespace {

// Strangers' bytes end up in these messages, so everything that JSON or a terminal could stumble
// over is replaced rather than escaped.
char Printable(char c) { return c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c; }

}  // namespace

HttpResponse ErrorResponse(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = R"({"error":")";
  for (const char c : message) {
    response.body += Printable(c);
  }
  response.body += R"("})";
  return response;
}

}  // namespace berth::http
