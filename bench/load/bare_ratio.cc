// SPDX-License-Identifier: Apache-2.0
#include "bench/load/bare_ratio.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/http/http_client.h"
#include "bench/load/bare_server.h"
#include "bench/load/berth_server.h"
#include "bench/replay/http_calls.h"
#include "bench/replay/latency.h"
#include "server/http/http_server.h"

namespace berth::load {
namespace {

using http::HttpClient;

constexpr char kOneGpu[] = R"("cpu":"8","memory":"32Gi","nvidia.com/gpu":"1")";
constexpr char kTwoGpus[] = R"("cpu":"8","memory":"32Gi","nvidia.com/gpu":"2")";

struct Side {
  std::vector<double> filter_us, prioritize_us;
};

std::string Post(HttpClient& client, const char* path, const std::string& body,
                 std::vector<double>* us) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = http::Post(client, path, body);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  if (us != nullptr) us->push_back(taken.count());
  BERTH_CHECK(answer.has_value());
  return *std::move(answer);
}

// Our own HTTP server without Berth behind it: sends prepared answers.
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
      : berth_server_(nodes, false),
        berth_(HttpClient::Connect(berth_server_.address()).value()),
        empty_(HttpClient::Connect(empty_server_.address()).value()),
        bare_(HttpClient::Connect(bare_server_.address()).value()),
        names_(berth_server_.NameList()) {}

  void Run(std::size_t n, Sides& sides) {
    const std::string uid = "uid-" + std::to_string(n);
    const std::string body = FilterBody(PodJson(uid, n % 7 == 0 ? kTwoGpus : kOneGpu), names_);
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
    Post(berth_, "/extender/bind", BindBody(uid, BestOf(scored)), nullptr);
  }

 private:
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

}  // namespace

void MeasureRatio(std::size_t nodes, std::size_t pods) {
  Cycle cycle(nodes);
  const std::size_t warm_up = pods / 10 + 10;
  Sides warming, sides;
  for (std::size_t n = 0; n < warm_up; ++n) cycle.Run(n, warming);
  for (std::size_t n = 0; n < pods; ++n) cycle.Run(warm_up + n, sides);

  std::printf("%zu nodes of %d GPUs, %zu pods, one keep-alive connection\n", nodes, kGpusPerNode,
              pods);
  PrintSide("berth", sides.berth);
  PrintSide("bare Beast", sides.bare);
  PrintSide("no decision", sides.empty);
  std::printf("berth / bare Beast, sums of p50: %.2f\n",
              SumOfP50(sides.berth) / SumOfP50(sides.bare));
  std::printf("berth / its own HTTP server without decisions, sums of p50: %.2f\n",
              SumOfP50(sides.berth) / SumOfP50(sides.empty));
}

}  // namespace berth::load
