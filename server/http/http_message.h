// SPDX-License-Identifier: Apache-2.0
//
// HttpRequest and HttpResponse: one request as a handler sees it, and what it answers. Plain values
// without any type of the HTTP library.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"

namespace berth::http {

// The views are valid while the handler runs. A handler may change the body (parse it in place) or
// move it away.
struct HttpRequest {
  std::string_view method;  // as sent: "POST"
  std::string_view path;    // without query, double or trailing slashes: "/filter"
  std::string_view query;   // what followed '?', undecoded; mostly empty
  PaddedText body;  // decoded (no chunks left); only the identity content encoding gets here
  // When its first byte reached this host, so that the time in the socket, while the thread is busy
  // with another request, counts as waiting. A wait of less than 10 ms counts as none.
  Instant began = std::chrono::steady_clock::now();
  bool accepts_gzip = false;            // Accept-Encoding
  std::string_view if_none_match = {};  // If-None-Match, as sent
};

class Reply;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";  // empty: no Content-Type
  std::string allow;                              // empty: no Allow
  std::string body;
  // If set, this is the body, not `body`; other answers may share it.
  std::shared_ptr<const std::string> shared_body = {};
  bool gzip = false;      // the body is compressed
  std::string etag = {};  // empty: no ETag
  // The header Content-Security-Policy; empty: none.
  std::string policy = {};
  bool ends_connection = false;
  // If set, the answer comes later: the server calls this function at once, on the I/O thread, with
  // the Reply for the answer. If it throws, the client gets 500.
  std::function<void(Reply)> later = {};
};

// The answer to one request, given from any thread. The first call counts. If the last copy goes
// without a call, the client gets 500. All copies must be gone before the server is destroyed.
class Reply {
 public:
  explicit Reply(std::function<void(HttpResponse)> send, std::function<bool()> waits = {});
  void operator()(HttpResponse response) const;

  // False once the client is known to have closed its side, which is checked once a second. Answer
  // it nevertheless: some clients close their side and still read.
  [[nodiscard]] bool waits() const;

 private:
  class Once;
  std::shared_ptr<Once> once_;
};

// The server calls it synchronously, on several I/O threads at once, so it must be thread-safe.
// While it runs, the other connections of that thread wait: a handler that blocks must answer
// `later`. If it throws, the client gets 500, and the exception is counted. For a HEAD request the
// server sends the length of the body and no body.
using HttpHandler = std::function<HttpResponse(HttpRequest&)>;

inline const std::string& BodyOf(const HttpResponse& response) {
  return response.shared_body ? *response.shared_body : response.body;
}

// A response whose body is {"error": "<message>"}.
HttpResponse ErrorResponse(int status, std::string_view message);

// The bytes in front of a response's body.

enum class AfterResponse {
  kKeepAlive,
  kKeepAliveHttp10,  // an HTTP/1.0 client needs the field
  kClose,
};

// Replaces `header` with the status line and the fields, up to and including the empty line.
void FormatResponseHeader(const HttpResponse& response, AfterResponse after, std::string& header);

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace berth::http
