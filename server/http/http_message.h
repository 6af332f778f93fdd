// SPDX-License-Identifier: Apache-2.0
//
// HttpRequest and HttpResponse: one request as a handler sees it, and what it answers. Plain values
// without any type of the HTTP library.
#pragma once

#include <cstddef>
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
  // What a browser may load and run for a document (Content-Security-Policy); empty: not said.
  std::string policy = {};
  bool ends_connection = false;
  // If set, the answer comes later: this function is called at once, on the I/O thread, with the
  // Reply that will take the answer. An exception of it is answered with 500.
  std::function<void(Reply)> later = {};
};

// The answer to one request, given from any thread. The first call counts; when the last copy goes
// without a call the client gets 500. Every copy is dropped before the server is destroyed.
class Reply {
 public:
  explicit Reply(std::function<void(HttpResponse)> send, std::function<bool()> waits = {});
  void operator()(HttpResponse response) const;

  // False once the client is known to have closed its side, which is looked at once a second. It is
  // answered all the same: some close their side and read on.
  [[nodiscard]] bool waits() const;

 private:
  class Once;
  std::shared_ptr<Once> once_;
};

// Called synchronously on an I/O thread, from several of them at once: it must be thread-safe, and
// while it runs the other connections of that thread wait: what blocks is answered `later`. An
// exception that escapes it is answered with 500 and counted. For a HEAD request the server sends
// the length of the body and no body.
using HttpHandler = std::function<HttpResponse(HttpRequest&)>;

inline const std::string& BodyOf(const HttpResponse& response) {
  return response.shared_body ? *response.shared_body : response.body;
}

// A response whose body is {"error": "<message>"}.
HttpResponse ErrorResponse(int status, std::string_view message);

}  // namespace berth::http
