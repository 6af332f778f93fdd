// SPDX-License-Identifier: Apache-2.0
//
// berth-load: what filter and prioritize cost over HTTP, as a ratio to a bare Beast server that
// reads the same bytes and writes the same answers, both asked in turn over one keep-alive
// connection each.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "bench/load/bare_server.h"
#include "bench/replay/http_client.h"
#include "bench/replay/latency.h"
#include "bench/replay/text.h"
#include "cluster/cluster_state.h"
#include "config/config.h"
#include "scoring/profile.h"
#include "server/extender/extender.h"
#include "server/http/http_server.h"
#include "server/kube/embedded_cluster.h"
#include "server/routes.h"
#include "server/telemetry/decision_recorder.h"

namespace berth::load {
namespace {

using replay::HttpClient;

constexpr int kGpusPerNode = 8;

// A server in this process, as `berth serve` builds it.
class BerthServer {
 public:
  explicit BerthServer(std::size_t nodes)
      : extender_(
            {state_, binder_, recorder_, clock_},
            {std::make_shared<Engine>(BuildProfile(ChosenProfile(config_), MixOf(config_)).value()),
             std::chrono::seconds(30)}),
        verbs_(extender_, rules_, metrics_) {
    std::vector<ClusterEvent> events;
    for (std::size_t i = 0; i < nodes; ++i) {
      NodeSpec spec{"gpu-node-" + replay::Padded(i, 100'000) + ".pool-a.example",
                    "A100",
                    128'000,
                    std::int64_t{1} << 40,
                    true,
                    {}};
      spec.gpus.assign(kGpusPerNode, GpuSpec{"", 81251, true});
      events.emplace_back(NodeUpserted{std::move(spec)});
    }
    BERTH_CHECK(state_.Apply(events).has_value());
    http::Router router;
    AddServiceRoutes(router, {verbs_, state_, metrics_, readiness_});
    http::HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 1;
    server_ = http::HttpServer::Start(std::move(options), router).value();
  }

  [[nodiscard]] const std::string& address() const { return server_->address(); }

  [[nodiscard]] std::string NameList() const {
    std::string list;
    const auto snapshot = state_.Current();
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      list.append(i == 0 ? "\"" : ",\"").append(snapshot->names().name(i)).append("\"");
    }
    return list;
  }

 private:
  const Config config_ = DefaultConfig();
  const wire::PodRules rules_{config_.resources};
  Log log_{LogLevel::kError};
  Metrics metrics_;
  DecisionRecorder recorder_{log_, metrics_};
  SystemClock clock_;
  ClusterState state_;
  EmbeddedCluster binder_;
  Extender extender_;
  Verbs verbs_;
  Readiness readiness_{nullptr};
  std::unique_ptr<http::HttpServer> server_;
};

// About as long as a pod that kube-scheduler sends.
std::string PodJson(const std::string& uid, int gpus) {
  const std::string amounts =
      R"({"cpu":"8","memory":"32Gi","nvidia.com/gpu":")" + std::to_string(gpus) + R"("})";
  return R"({"metadata":{"name":"p-)" + uid + R"(","namespace":"default","uid":")" + uid +
         R"(","resourceVersion":"276","generation":1,"creationTimestamp":"2026-03-01T09:32:04Z",)"
         R"("labels":{"app":"train"}},"spec":{"containers":[{"name":"main","image":)"
         R"("registry.invalid/train:1","resources":{"limits":)" +
         amounts + R"(,"requests":)" + amounts +
         R"(},"terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}],)"
         R"("restartPolicy":"Never","schedulerName":"default-scheduler","tolerations":[{"key":)"
         R"("node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",)"
         R"("tolerationSeconds":300}],"priority":10},"status":{"phase":"Pending"}})";
}

struct Side {
  std::vector<double> filter_us, prioritize_us;
};

std::string Post(HttpClient& client, const char* path, const std::string& body,
                 std::vector<double>* us) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = client.Post(path, body);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  if (us != nullptr) us->push_back(taken.count());
  BERTH_CHECK(answer.has_value());
  return *std::move(answer);
}

// Our own HTTP server without Berth behind it: answers what it is told to.
class EmptyServer {
 public:
  EmptyServer() {
    http::HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 1;
    server_ = http::HttpServer::Start(std::move(options), [this](http::HttpRequest&) {
                http::HttpResponse response;
                response.body = *answer_.load();
                return response;
              }).value();
  }
  [[nodiscard]] const std::string& address() const { return server_->address(); }
  void SetAnswer(const std::string* answer) { answer_.store(answer); }

 private:
  std::atomic<const std::string*> answer_{nullptr};
  std::unique_ptr<http::HttpServer> server_;
};

struct Sides {
  Side berth, empty, bare;
};

// One pod: both verbs on all servers in turn, then the bind, so that the next pod meets a changed
// cluster.
class Cycle {
 public:
  explicit Cycle(std::size_t nodes)
      : berth_server_(nodes),
        berth_(HttpClient::Connect(berth_server_.address()).value()),
        empty_(HttpClient::Connect(empty_server_.address()).value()),
        bare_(HttpClient::Connect(bare_server_.address()).value()),
        names_(berth_server_.NameList()) {}

  void Run(std::size_t n, Sides& sides) {
    const std::string uid = "uid-" + std::to_string(n);
    const std::string body = R"({"Pod":)" + PodJson(uid, n % 7 == 0 ? 2 : 1) +
                             R"(,"Nodes":null,"NodeNames":[)" + names_ + "]}";
    const std::string filtered = Post(berth_, "/extender/filter", body, &sides.berth.filter_us);
    const std::string scored =
        Post(berth_, "/extender/prioritize", body, &sides.berth.prioritize_us);
    empty_server_.SetAnswer(&filtered);
    Post(empty_, "/extender/filter", body, &sides.empty.filter_us);
    empty_server_.SetAnswer(&scored);
    Post(empty_, "/extender/prioritize", body, &sides.empty.prioritize_us);
    bare_server_.SetAnswer(&filtered);
    Post(bare_, "/extender/filter", body, &sides.bare.filter_us);
    bare_server_.SetAnswer(&scored);
    Post(bare_, "/extender/prioritize", body, &sides.bare.prioritize_us);
    Bind(uid, scored);
  }

 private:
  void Bind(const std::string& uid, const std::string& scored) {
    const std::size_t best = scored.find("\",\"Score\":10}");
    BERTH_CHECK(best != std::string::npos);
    const std::size_t name = scored.rfind('"', best - 1) + 1;
    Post(berth_, "/extender/bind",
         R"({"PodName":"p-)" + uid + R"(","PodNamespace":"default","PodUID":")" + uid +
             R"(","Node":")" + scored.substr(name, best - name) + "\"}",
         nullptr);
  }

  BerthServer berth_server_;
  EmptyServer empty_server_;
  BareServer bare_server_;
  HttpClient berth_, empty_, bare_;
  const std::string names_;
};

double SumOfP50(const Side& side) {
  return replay::Summarize(side.filter_us).p50 + replay::Summarize(side.prioritize_us).p50;
}

void PrintSide(const char* name, const Side& side) {
  const auto filter = replay::Summarize(side.filter_us);
  const auto prioritize = replay::Summarize(side.prioritize_us);
  std::printf(
      "%-12s filter p50 %7.1f us  p99 %8.1f   prioritize p50 %7.1f us  p99 %8.1f   sum p50 %7.1f\n",
      name, filter.p50, filter.p99, prioritize.p50, prioritize.p99, filter.p50 + prioritize.p50);
}

int Main(int argc, char** argv) {
  CLI::App app("Filter and prioritize over HTTP against a bare Beast server", "berth-load");
  std::size_t nodes = 5000, rounds = 2000;
  app.add_option("--nodes", nodes, "Nodes of 8 GPUs")->check(CLI::Range(1, 90'000));
  app.add_option("--rounds", rounds, "Pods to place while measuring")->check(CLI::Range(1, 20'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  Cycle cycle(nodes);
  const std::size_t warm_up = rounds / 10 + 10;
  Sides warming, sides;
  for (std::size_t n = 0; n < warm_up; ++n) cycle.Run(n, warming);
  for (std::size_t n = 0; n < rounds; ++n) cycle.Run(warm_up + n, sides);

  std::printf("%zu nodes of %d GPUs, %zu pods, one keep-alive connection\n", nodes, kGpusPerNode,
              rounds);
  PrintSide("berth", sides.berth);
  PrintSide("bare Beast", sides.bare);
  PrintSide("no decision", sides.empty);
  std::printf("berth / bare Beast, sums of p50: %.2f\n",
              SumOfP50(sides.berth) / SumOfP50(sides.bare));
  std::printf("berth / its own HTTP server without decisions, sums of p50: %.2f\n",
              SumOfP50(sides.berth) / SumOfP50(sides.empty));
  return 0;
}

}  // namespace
}  // namespace berth::load

int main(int argc, char** argv) { return berth::load::Main(argc, argv); }
