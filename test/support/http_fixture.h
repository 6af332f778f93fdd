// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the HTTP server share: a server with a few routes.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "test/support/eventually.h"
#include "test/support/raw_client.h"

namespace berth::test {

inline http::HttpServerOptions LocalOptions() {
  http::HttpServerOptions options;
  options.listen = "127.0.0.1:0";
  return options;
}

// POST /filter answers the request's body, POST /throw throws, GET /healthz says ok.
inline http::Router EchoRoutes() {
  http::Router router;
  router.Add("POST", "/filter", [](http::HttpRequest& request) {
    http::HttpResponse response;
    response.body = std::move(request.body);
    return response;
  });
  router.Add("POST", "/throw", [](http::HttpRequest&) -> http::HttpResponse {
    throw std::runtime_error("not for strangers");
  });
  router.Add("GET", "/healthz", [](http::HttpRequest&) {
    http::HttpResponse response;
    response.content_type = "text/plain";
    response.body = "ok";
    return response;
  });
  return router;
}

// Requires: it starts (else the test process ends with the reason).
inline std::unique_ptr<http::HttpServer> StartServer(
    http::HttpServerOptions options = LocalOptions(), http::HttpHandler handler = EchoRoutes()) {
  auto server = http::HttpServer::Start(std::move(options), std::move(handler));
  if (!server) {
    throw std::runtime_error(server.error().message);
  }
  return *std::move(server);
}

inline RawClient ConnectTo(const http::HttpServer& server) {
  return RawClient("127.0.0.1", server.port());
}

inline bool NobodyConnected(const http::HttpServer& server) {
  return Eventually([&server] { return server.stats().open_connections == 0; });
}

}  // namespace berth::test
