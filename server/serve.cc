// SPDX-License-Identifier: Apache-2.0
#include "server/serve.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/check.h"
#include "base/file.h"
#include "scoring/profile.h"
#include "server/config_reload.h"
#include "server/http/http_server.h"
#include "server/kube/embedded_cluster.h"
#include "server/routes.h"
#include "server/telemetry/decision_recorder.h"
#include "server/telemetry/log.h"
#include "server/wire/cluster_file.h"

namespace berth {
namespace {

http::HttpServerOptions OptionsOf(const ServerConfig& config, Log& log) {
  http::HttpServerOptions options;
  options.listen = config.listen;
  options.threads = config.threads;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
  if (!config.tls.certificate_file.empty()) {
    http::TlsOptions tls;
    tls.certificate_file = config.tls.certificate_file;
    tls.key_file = config.tls.key_file;
    tls.client_ca_file = config.tls.client_ca_file;
    tls.on_reload = [&log](const Status& status) {
      if (status) {
        log.Write(LogLevel::kInfo, "certificate_reloaded", {});
      } else {
        log.Write(LogLevel::kError, "certificate_refused", {{"error", status.error().message}});
      }
    };
    options.tls = std::move(tls);
  }
  return options;
}

// Signals are taken from a set that every thread blocks: no handler runs anywhere.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    BERTH_CHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
    std::signal(SIGPIPE, SIG_IGN);
  }

  // Waits; calls tick once a second.
  template <class Tick>
  void Wait(Tick tick) const {
    constexpr timespec kSecond{1, 0};
    while (sigtimedwait(&set_, nullptr, &kSecond) < 0) tick();
  }

 private:
  sigset_t set_{};
};

// Everything that lives as long as the service, in the order in which it is built.
class Service {
 public:
  Service(const Config& config, ConfigFile config_file, Profile profile)
      : config_(config),
        log_(LevelNamed(config.log_level)),
        recorder_(log_, metrics_),
        rules_(config.resources),
        extender_({state_, binder_, recorder_, clock_},
                  {std::make_shared<Engine>(std::move(profile)),
                   std::chrono::seconds(config.reservation_seconds)}),
        reload_(std::move(config_file), {extender_, log_, metrics_}),
        verbs_(extender_, rules_, metrics_) {}

  Status Load(const std::string& cluster_file) {
    BERTH_TRY(std::string text, ReadFile(cluster_file));
    auto events = wire::DecodeCluster(std::move(text), wire::NodeRules(config_));
    if (!events) return tl::unexpected(std::move(events).error().Within(cluster_file));
    BERTH_TRY_STATUS(state_.Apply(*events));
    for (const ClusterEvent& event : *events) {
      const auto* bound = std::get_if<PodBound>(&event);
      if (bound == nullptr || bound->pod.id.name.empty()) continue;
      BERTH_TRY_STATUS(binder_.Bind(bound->pod, bound->placement));
    }
    log_.Write(LogLevel::kInfo, "cluster_loaded",
               {{"file", cluster_file}, {"nodes", state_.Current()->size()}});
    readiness_.Set(nullptr);
    return {};
  }

  Status Listen() {
    const RouteParts parts{verbs_, state_, metrics_, readiness_, [this] {
                             const http::HttpServer* const server = serving_.load();
                             return server == nullptr ? http::HttpServerStats{} : server->stats();
                           }};
    http::Router routes, debug_routes;
    AddServiceRoutes(routes, parts);
    if (config_.server.debug_listen.empty()) AddDebugRoutes(routes, parts);
    AddDebugRoutes(debug_routes, parts);
    BERTH_TRY(server_, http::HttpServer::Start(OptionsOf(config_.server, log_), routes));
    serving_ = server_.get();
    if (!config_.server.debug_listen.empty() && config_.server.debug_listen != "off") {
      http::HttpServerOptions options;
      options.listen = config_.server.debug_listen;
      options.threads = 1;
      BERTH_TRY(debug_server_, http::HttpServer::Start(std::move(options), debug_routes));
    }
    return {};
  }

  void Announce() {
    const bool tls = !config_.server.tls.certificate_file.empty();
    std::printf("berth: listening on %s://%s\n", tls ? "https" : "http",
                server_->address().c_str());
    std::fflush(stdout);
    log_.Write(LogLevel::kInfo, "listening",
               {{"address", server_->address()}, {"profile", config_.profile}});
  }

  void Tick() {
    reload_.Look();
    if (const std::size_t expired = state_.Expire(clock_.Now()); expired > 0) {
      log_.Write(LogLevel::kWarn, "reservations_expired", {{"count", expired}});
    }
  }

  void Drain() {
    log_.Write(LogLevel::kInfo, "draining", {});
    server_->Drain(std::chrono::seconds(config_.server.drain_seconds));
    log_.Write(LogLevel::kInfo, "stopped", {});
  }

 private:
  const Config& config_;
  Log log_;
  Metrics metrics_;
  DecisionRecorder recorder_;
  const wire::PodRules rules_;
  SystemClock clock_;
  ClusterState state_;
  EmbeddedCluster binder_;
  Extender extender_;
  ConfigReload reload_;
  Verbs verbs_;
  Readiness readiness_{"the cluster is not loaded yet"};
  std::atomic<const http::HttpServer*> serving_{nullptr};  // server_, once it is there
  std::unique_ptr<http::HttpServer> server_;
  std::unique_ptr<http::HttpServer> debug_server_;
};

}  // namespace

Status Serve(ConfigFile config_file, const std::string& cluster_file) {
  const StopSignals signals;
  const Config config = config_file.config();
  BERTH_TRY(Profile profile, BuildProfile(ChosenProfile(config), MixOf(config)));
  Service service(config, std::move(config_file), std::move(profile));
  BERTH_TRY_STATUS(service.Load(cluster_file));
  BERTH_TRY_STATUS(service.Listen());
  service.Announce();
  signals.Wait([&service] { service.Tick(); });
  service.Drain();
  return {};
}

}  // namespace berth
