// SPDX-License-Identifier: Apache-2.0
//
// berth-kube-bench: the cost of reading a large cluster from its API server and of following its
// events. The API server is a process of its own; time and memory are those of this process.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "bench/kube/claim_bench.h"
#include "bench/kube/fake_api_server.h"
#include "bench/kube/measuring_sink.h"
#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "server/dialects/registry.h"
#include "server/kube/client/http_api_client.h"
#include "server/kube/watch/cluster_sync.h"
#include "server/kube/watch/reflector.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube_bench {
namespace {

// Reads all pages and ignores them: the cost of the client without the reflector.
Usage ReadPages(kube::ApiClient& client, const std::string& path, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += 500) {
    const std::string page = path + "?limit=500&continue=" + std::to_string(begin);
    const auto answer =
        client.Stream(page, std::chrono::seconds(60), {}, [](std::string_view) { return true; });
    if (!answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
  }
  return Usage::Now();
}

void PrintRow(const char* what, const Usage& from, const Usage& to) {
  std::printf("%-34s %8.2f %8.2f %8.1f %8.1f\n", what, to.wall_s - from.wall_s,
              to.cpu_s - from.cpu_s, to.rss_mib, to.peak_mib);
}

// Reflects the path until the list and so many events have gone through the sink.
template <class Sink>
void Reflect(kube::ApiClient& client, const std::string& path, std::size_t events, Sink& sink) {
  const SystemClock clock;
  MeasuringSink<Sink> measuring(sink, events);
  kube::ReflectorOptions options;
  options.path = path;
  options.on_problem = [](const std::string& problem) {
    std::fprintf(stderr, "%s\n", problem.c_str());
  };
  const Usage start = Usage::Now();
  {
    const kube::Reflector reflector(client, measuring, clock, options);
    while (!measuring.list_done() || (events > 0 && !measuring.events_done())) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  const std::string what = "list " + path;
  PrintRow(what.c_str(), start, measuring.at_list_end());
  std::printf("  %zu objects, %.1f MiB\n", measuring.listed(), measuring.listed_mib());
  if (measuring.marks().empty()) return;
  const Usage& last = measuring.marks().back();
  PrintRow("watch, all events", measuring.at_list_end(), last);
  const double micros = (last.cpu_s - measuring.at_list_end().cpu_s) * 1e6;
  std::printf("  %.1f us of CPU per event; RSS after each tenth:",
              micros / static_cast<double>(events));
  for (const Usage& mark : measuring.marks()) std::printf(" %.1f", mark.rss_mib);
  std::printf(" MiB\n");
}

// Into a ClusterState, as `berth serve` does it. Exit status 1 if not everything arrived there.
int LearnCluster(kube::ApiClient& client, const ClusterSize& size) {
  const Config config = DefaultConfig();
  const wire::PodRules pod_rules(dialects::AllDialects(config), config.resources);
  const wire::NodeRules node_rules(config, dialects::AllDialects(config));
  const auto report = [](std::string_view, std::string_view object, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", std::string(object).c_str(), why.c_str());
  };
  ClusterState state;
  kube::NodeSink nodes(kube::PublishTo(state), node_rules, report);
  kube::PodSink pods(state, pod_rules, report);
  std::printf("sinks of berth serve\n");
  Reflect(client, "/api/v1/nodes", 0, nodes);
  Reflect(client, "/api/v1/pods", size.events, pods);
  const std::size_t learned_nodes = state.Current()->size(),
                    learned_pods = state.BoundUids().size();
  std::printf("  in the state: %zu nodes, %zu pods, %zu of them without known GPUs\n",
              learned_nodes, learned_pods, state.Current()->CountUnattributed());
  return learned_nodes == size.nodes && learned_pods == size.pods ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("berth-kube-bench: list and watch against an API server of its own");
  ClusterSize size;
  app.add_option("--nodes", size.nodes);
  app.add_option("--pods", size.pods);
  app.add_option("--events", size.events);
  ClaimSize claims;
  app.add_option("--dra-nodes", claims.nodes,
                 "measures devices and claims of DRA in place of that");
  app.add_option("--dra-partitioned", claims.partitioned);
  app.add_option("--claims", claims.pods);
  CLI11_PARSE(app, argc, argv);
  if (claims.nodes > 0) return MeasureClaims(claims);

  const FakeApiServer server(size);
  ClusterAccess access;
  access.server = server.url();
  const auto client = kube::HttpApiClient::Create(access);
  if (!client) {
    std::fprintf(stderr, "berth-kube-bench: %s\n", client.error().message.c_str());
    return 1;
  }
  std::printf("%-34s %8s %8s %8s %8s\n", "", "wall s", "CPU s", "RSS MiB", "peak");
  const Usage start = Usage::Now();
  PrintRow("client alone, pages of pods", start, ReadPages(**client, "/api/v1/pods", size.pods));
  CountingSink counted;
  std::printf("sinks that only count\n");
  Reflect(**client, "/api/v1/nodes", 0, counted);
  Reflect(**client, "/api/v1/pods", size.events, counted);
  return LearnCluster(**client, size);
}

}  // namespace
}  // namespace berth::kube_bench

int main(int argc, char** argv) { return berth::kube_bench::Main(argc, argv); }
