// SPDX-License-Identifier: Apache-2.0
//
// HttpServer: HTTP/1.1 (and 1.0) over TCP or TLS, built to be reachable by strangers: every buffer
// has a limit, every wait a deadline, and a bad client costs only its own connection.
//
// Each I/O thread has its own event loop and keeps the connections it was given, so that nothing on
// the way of a request takes a lock. Handlers run on these threads. One more thread accepts.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/http/http_message.h"

namespace berth::http {

// Files are PEM. TLS 1.2 and later are spoken.
struct TlsOptions {
  std::string certificate_file;  // the certificate and, if any, its intermediates
  std::string key_file;          // unencrypted
  // CAs of client certificates; empty: clients need none. If set, a connection needs a valid
  // certificate.
  std::string client_ca_file;
  // How often the files are checked. New connections use changed content; content that does not
  // load is reported, and the last good content stays in use.
  Duration reload_interval = std::chrono::seconds(10);
  // Called on the accepting thread after each change of the files: the outcome of loading them.
  // Must not throw.
  std::function<void(const Status&)> on_reload;
};

struct HttpServerOptions {
  // "HOST:PORT", "[V6]:PORT", or ":PORT" for every address of both families. Port 0: any free port.
  std::string listen;
  int threads = 2;
  std::size_t max_body_bytes = std::size_t{128} << 20;   // more: 413
  std::size_t max_header_bytes = std::size_t{64} << 10;  // more: 431
  // Limit of all requests that all connections hold, including those being handled; more: 503.
  // Bodies above 1 MiB may use half of it, so that few clients cannot take all. Without it a few
  // hundred clients could fill the memory, each within max_body_bytes.
  std::size_t max_request_bytes = std::size_t{256} << 20;
  // Limit of all answers that clients have not read yet; more: 503 instead of the answer.
  std::size_t max_answer_bytes = std::size_t{128} << 20;
  int max_connections = 10'000;  // more: closed right after accept

  // From its first byte to the end of the header (and for the whole TLS handshake).
  Duration header_timeout = std::chrono::seconds(10);
  // Between requests, and before the first one. Longer than the 90 s of Go's client, which cannot
  // retry a POST that met a closing connection.
  Duration idle_timeout = std::chrono::seconds(120);
  // A body of n bytes must arrive within body_grace + n / min_bytes_per_second after its header.
  // For a chunked body, n is the number of bytes received so far.
  Duration body_grace = std::chrono::seconds(10);
  // The client must read an answer of n bytes within write_grace + n / min_bytes_per_second.
  Duration write_grace = std::chrono::seconds(10);
  std::size_t min_bytes_per_second = std::size_t{1} << 20;
  // Limit for an answer that comes later (HttpResponse::later); then the connection is closed.
  Duration later_limit = std::chrono::minutes(10);

  std::optional<TlsOptions> tls;
};

// Totals since Start, except for open_connections, request_bytes and answer_bytes. Each
// number is read alone: they need not be of the same moment.
struct HttpServerStats {
  std::uint64_t open_connections = 0;
  std::uint64_t request_bytes = 0;  // now, see max_request_bytes
  std::uint64_t answer_bytes = 0;   // now, see max_answer_bytes
  std::uint64_t accepted = 0;
  std::uint64_t refused_connections = 0;  // over max_connections, or out of file descriptors
  std::uint64_t requests = 0;             // that reached the handler
  std::array<std::uint64_t, 6> responses_by_class{};  // [2]: 2xx ... [5]: 5xx; [0] is not used
  std::uint64_t refused_requests = 0;  // answered before the handler: malformed, too large...
  std::uint64_t timeouts = 0;          // handshake, header, body or answer; not idle connections
  std::uint64_t handler_exceptions = 0;
  std::uint64_t tls_handshake_failures = 0;
  std::int64_t certificate_expires = 0;  // of the one in use, in seconds since 1970; 0: plain HTTP
};

class Listener;
class Shard;
struct Service;

class HttpServer {
 public:
  // Listens and serves at once; raises the soft limit of open files to the hard one. Errors name
  // the address or file: kInvalidArgument for malformed options and TLS files that do not load,
  // kUnavailable for what the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options,
                                                                 HttpHandler handler);

  // Closes everything; waits for handlers that run.
  ~HttpServer();

  // The actual address: "127.0.0.1:8080", "[::]:8080".
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }

  // Any thread.
  [[nodiscard]] HttpServerStats stats() const;

  // Shuts down without cutting off clients: no new connection is accepted, every answer says
  // "Connection: close", idle connections stay for `grace` (a request may be on its way to them),
  // then busy ones have `grace` more before they are cut. Returns as soon as no connection is left.
  // Call it once, from a thread that is not the server's (never in a handler).
  void Drain(Duration grace);

 private:
  HttpServer(HttpServerOptions options, HttpHandler handler);
  Status Open();

  const std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Listener> listener_;  // stops before the shards do
  std::string address_;
  std::uint16_t port_ = 0;
};

// Router: an HttpHandler that hands each request to the handler of its exact path and method.
//
//   path under a known prefix        the handler of the longest such prefix
//   unknown path                     404 {"error": "..."}
//   known path, method not added     405 with Allow, {"error": "..."}
//   HEAD on a path with GET          what GET answers (the server sends no body for HEAD)
//   OPTIONS on a known path          200 with Allow and no body
//
// TRACE and CONNECT cannot be added and so always end in 404 or 405. Nothing is ever redirected.

// Add everything first, then let any number of threads call it.
class Router {
 public:
  // Answers METHOD PATH with the handler. Requires: the first handler of this pair; a path in
  // normal form ("/filter": leading slash, no trailing one), and GET, POST, PUT, PATCH or DELETE
  // (HEAD and OPTIONS come for free).
  void Add(std::string_view method, std::string_view path, HttpHandler handler);

  // The same for all paths below one: of "/pods" the handler answers "/pods/a/b" and not "/pods". A
  // path that was added itself comes first.
  void AddUnder(std::string_view method, std::string_view path, HttpHandler handler);

  HttpResponse operator()(HttpRequest& request) const;

 private:
  struct Route {
    std::map<std::string, HttpHandler, std::less<>> methods;
    std::string allow;  // "GET, HEAD"
  };

  using Routes = std::map<std::string, Route, std::less<>>;
  static void AddTo(Routes& routes, std::string_view method, std::string_view path,
                    HttpHandler handler);
  [[nodiscard]] const Route* Find(std::string_view path) const;  // nullptr: there is none

  Routes routes_, under_;
};

}  // namespace berth::http
