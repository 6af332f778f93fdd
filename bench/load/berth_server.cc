// SPDX-License-Identifier: Apache-2.0
#include "bench/load/berth_server.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/replay/text.h"
#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "config/load.h"
#include "scoring/waste/request_mix.h"
#include "scoring/waste/waste_report.h"
#include "server/dialects/registry.h"
#include "server/extender/extender.h"
#include "server/extender/ports/embedded_cluster.h"
#include "server/http/http_server.h"
#include "server/service/routes.h"
#include "server/telemetry/metrics.h"

namespace berth::load {

class BerthServer::Impl {
 public:
  Impl(std::size_t nodes, bool learns)
      : mix_(learns ? std::make_shared<LearnedMix>(LearningParameters()) : nullptr),
        extender_({state_, binder_, recorder_, clock_, nullptr, mix_.get()},
                  {EngineFor(config_, mix_, Snapshot()), std::chrono::seconds(30)}),
        verbs_(extender_, rules_, metrics_) {
    std::vector<ClusterEvent> events;
    for (std::size_t i = 0; i < nodes; ++i) {
      NodeSpec spec{"gpu-node-" + replay::Padded(i, 1'000'000) + ".pool-a.example",
                    "A100",
                    128'000,
                    std::int64_t{1} << 40,
                    true,
                    {}};
      spec.gpus.assign(kGpusPerNode, GpuSpec{"", 81251, true});
      events.emplace_back(NodeUpserted{std::move(spec)});
    }
    BERTH_CHECK(state_.Apply(events).has_value());
    extender_.Use({EngineFor(config_, mix_, *state_.Current(), InBackground(background_)),
                   std::chrono::seconds(30)});
    http::Router router;
    RouteParts parts{verbs_, live_, metrics_};
    parts.pages = &pages_;
    AddServiceRoutes(router, parts);
    AddDebugRoutes(router, parts);
    http::HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 1;
    server_ = http::HttpServer::Start(std::move(options), router).value();
  }

  [[nodiscard]] const std::string& address() const { return server_->address(); }
  [[nodiscard]] std::shared_ptr<const Snapshot> Current() const { return state_.Current(); }

 private:
  const Config config_ = DefaultConfig();
  const wire::PodRules rules_{dialects::AllDialects(config_), config_.resources};
  const wire::NodeRules node_rules_{config_, dialects::AllDialects(config_)};
  Log log_{LogLevel::kError};
  Metrics metrics_;
  DecisionRecorder recorder_{log_, metrics_};
  SystemClock clock_;
  ClusterState state_;
  EmbeddedCluster binder_;
  const std::shared_ptr<LearnedMix> mix_;
  WasteReport waste_{WasteParameters()};
  WorkerPool background_{1, 1000};
  Extender extender_;
  Verbs verbs_;
  Readiness readiness_{nullptr};
  WaitingPods waiting_;
  NodeDomains domains_{{}};
  GangTable gangs_{{state_, waiting_, domains_}};
  const Live live_{.extender = extender_,
                   .state = state_,
                   .waiting = waiting_,
                   .gangs = gangs_,
                   .domains = domains_,
                   .pod_rules = rules_,
                   .node_rules = node_rules_,
                   .readiness = readiness_,
                   .mix = mix_.get(),
                   .waste = &waste_};
  std::unique_ptr<http::HttpServer> server_;
  PageWriter pages_;
};

BerthServer::BerthServer(std::size_t nodes, bool learns)
    : impl_(std::make_unique<Impl>(nodes, learns)) {}

BerthServer::~BerthServer() = default;

const std::string& BerthServer::address() const { return impl_->address(); }

std::string BerthServer::NameList() const {
  std::string list;
  const auto snapshot = impl_->Current();
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    list.append(i == 0 ? "\"" : ",\"").append(snapshot->names().name(i)).append("\"");
  }
  return list;
}

std::string PodJson(const std::string& uid, std::string_view amounts) {
  const std::string all = std::string("{") + std::string(amounts) + "}";
  return R"({"metadata":{"name":"p-)" + uid + R"(","namespace":"default","uid":")" + uid +
         R"(","resourceVersion":"276","generation":1,"creationTimestamp":"2026-03-01T09:32:04Z",)"
         R"("labels":{"app":"train"}},"spec":{"containers":[{"name":"main","image":)"
         R"("registry.invalid/train:1","resources":{"limits":)" +
         all + R"(,"requests":)" + all +
         R"(},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],)"
         R"("restartPolicy":"Never","schedulerName":"default-scheduler","tolerations":[{"key":)"
         R"("node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)"
         R"("tolerationSeconds":300}],"priority":10},"status":{"phase":"Pending"}})";
}

std::string FilterBody(const std::string& pod, const std::string& names) {
  return R"({"Pod":)" + pod + R"(,"Nodes":null,"NodeNames":[)" + names + "]}";
}

std::string BindBody(const std::string& uid, const std::string& node) {
  return R"({"PodName":"p-)" + uid + R"(","PodNamespace":"default","PodUID":")" + uid +
         R"(","Node":")" + node + "\"}";
}

std::string BestOf(const std::string& scored) {
  const std::size_t best = scored.find("\",\"Score\":10}");
  BERTH_CHECK(best != std::string::npos);
  const std::size_t name = scored.rfind('"', best - 1) + 1;
  return scored.substr(name, best - name);
}

}  // namespace berth::load
