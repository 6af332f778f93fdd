// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <sys/resource.h>

#include "base/check.h"
#include "server/http/listener.h"
#include "server/http/shard.h"

namespace berth::http {
namespace {

// One connection is one descriptor. Best effort: if it fails the server has fewer connections.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

Status CheckOptions(const HttpServerOptions& options) {
  if (options.threads < 1 || options.threads > 256) {
    return Invalid("threads: want 1 to 256, got " + std::to_string(options.threads));
  }
  if (options.max_connections < 1) {
    return Invalid("max_connections: want at least 1, got " +
                   std::to_string(options.max_connections));
  }
  if (options.max_header_bytes < 256) {
    return Invalid("max_header_bytes: want at least 256, got " +
                   std::to_string(options.max_header_bytes));
  }
  if (options.min_bytes_per_second < 1) {
    return Invalid("min_bytes_per_second: want at least 1, got 0");
  }
  for (const Duration limit :
       {options.header_timeout, options.idle_timeout, options.body_grace, options.write_grace}) {
    if (limit < std::chrono::milliseconds(1) || limit > std::chrono::hours(24)) {
      return Invalid("header_timeout, idle_timeout, body_grace, write_grace: want 1 ms to 24 h");
    }
  }
  if (options.tls && options.tls->reload_interval < std::chrono::milliseconds(1)) {
    return Invalid("tls.reload_interval: want at least 1 ms");
  }
  return {};
}

bool MayBeAdded(std::string_view method) {
  return method == "GET" || method == "POST" || method == "PUT" || method == "PATCH" ||
         method == "DELETE";
}

}  // namespace

HttpServer::HttpServer(HttpServerOptions options, HttpHandler handler)
    : service_(std::make_unique<Service>()) {
  service_->options = std::move(options);
  service_->handler = std::move(handler);
}

Status HttpServer::Open() {
  const HttpServerOptions& options = service_->options;
  BERTH_TRY_STATUS(CheckOptions(options));
  BERTH_TRY(const ListenAddress address, Within(ParseListenAddress(options.listen), "listen"));
  std::optional<TlsFiles> tls;
  if (options.tls) {
    BERTH_TRY(tls, TlsFiles::Load(*options.tls));
  }
  RaiseFileLimit();
  for (int i = 0; i < options.threads; ++i) {
    shards_.push_back(std::make_unique<Shard>(*service_));
  }
  BERTH_TRY(listener_, Listener::Start(*service_, shards_, address, std::move(tls)));
  const auto& endpoint = listener_->endpoint();
  port_ = endpoint.port();
  const std::string host = endpoint.address().to_string();
  address_ = (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port_);
  return {};
}

HttpServerStats HttpServer::stats() const {
  const ServerCounters& counters = service_->counters;
  HttpServerStats stats;
  stats.open_connections = service_->open.count();
  stats.request_bytes = service_->request_bytes.load(std::memory_order_relaxed);
  stats.answer_bytes = service_->answer_bytes.load(std::memory_order_relaxed);
  stats.accepted = counters.accepted.value();
  stats.refused_connections = counters.refused_connections.value();
  stats.requests = counters.requests.value();
  for (std::size_t i = 0; i < stats.responses_by_class.size(); ++i) {
    stats.responses_by_class[i] = counters.responses_by_class[i].value();
  }
  stats.refused_requests = counters.refused_requests.value();
  stats.timeouts = counters.timeouts.value();
  stats.handler_exceptions = counters.handler_exceptions.value();
  stats.tls_handshake_failures = counters.tls_handshake_failures.value();
  stats.certificate_expires = counters.certificate_expires.load(std::memory_order_relaxed);
  return stats;
}

void HttpServer::Drain(Duration grace) {
  service_->draining.store(true, std::memory_order_relaxed);
  listener_->Close();
  if (service_->open.WaitForNone(grace)) {
    return;
  }
  for (const auto& shard : shards_) {
    shard->CloseIdle();
  }
  if (service_->open.WaitForNone(grace)) {
    return;
  }
  for (const auto& shard : shards_) {
    shard->CloseAll();
  }
  // Closing takes no time, unless a handler blocks its shard.
  service_->open.WaitForNone(std::max<Duration>(grace, std::chrono::seconds(1)));
}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options,
                                                      HttpHandler handler) {
  // Asio and std::thread report a lack of descriptors or threads by throwing.
  try {
    std::unique_ptr<HttpServer> server(new HttpServer(std::move(options), std::move(handler)));
    BERTH_TRY_STATUS(server->Open());
    return server;
  } catch (const std::exception& exception) {
    return Fail(Errc::kUnavailable, std::string("http server: cannot start: ") + exception.what());
  }
}

void Router::AddTo(Routes& routes, std::string_view method, std::string_view path,
                   HttpHandler handler) {
  BERTH_CHECK(MayBeAdded(method));
  BERTH_CHECK(!path.empty() && path.front() == '/' && (path.size() == 1 || path.back() != '/'));
  Route& route = routes[std::string(path)];
  BERTH_CHECK(route.methods.emplace(method, std::move(handler)).second);
  route.allow.clear();
  for (const auto& [name, unused] : route.methods) {
    route.allow += route.allow.empty() ? "" : ", ";
    route.allow += name == "GET" ? "GET, HEAD" : name;
  }
}

void Router::Add(std::string_view method, std::string_view path, HttpHandler handler) {
  AddTo(routes_, method, path, std::move(handler));
}

void Router::AddUnder(std::string_view method, std::string_view path, HttpHandler handler) {
  AddTo(under_, method, path, std::move(handler));
}

const Router::Route* Router::Find(std::string_view path) const {
  if (const auto found = routes_.find(path); found != routes_.end()) return &found->second;
  for (std::size_t end = path.rfind('/'); end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    const auto found = under_.find(path.substr(0, end));
    if (found != under_.end()) return &found->second;
  }
  return nullptr;
}

HttpResponse Router::operator()(HttpRequest& request) const {
  const Route* const known = Find(request.path);
  if (known == nullptr) {
    return ErrorResponse(404, "no such path");
  }
  const Route& route = *known;
  const std::string_view method = request.method == "HEAD" ? "GET" : request.method;
  const auto handler = route.methods.find(method);
  if (handler != route.methods.end()) {
    return handler->second(request);
  }
  HttpResponse response =
      method == "OPTIONS" ? HttpResponse() : ErrorResponse(405, "want " + route.allow);
  response.allow = route.allow;
  return response;
}

}  // namespace berth::http
