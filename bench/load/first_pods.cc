// SPDX-License-Identifier: Apache-2.0
#include "bench/load/first_pods.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/http/http_client.h"
#include "bench/load/berth_server.h"
#include "bench/load/timed_call.h"
#include "bench/replay/http_calls.h"
#include "bench/replay/latency.h"

namespace berth::load {
namespace {

using http::HttpClient;

// 48 shapes, as a cluster of several teams may have.
std::string Amounts(Random& random) {
  constexpr int kWhole[] = {1, 1, 2, 2, 4, 8};
  constexpr int kCpuPerGpu[] = {4, 8, 12, 16};
  const int cpu_per_gpu = kCpuPerGpu[random.Below(4)];
  if (random.Below(2) == 0) {
    const int gpus = kWhole[random.Below(6)];
    return R"("cpu":")" + std::to_string(cpu_per_gpu * gpus) +
           R"(","memory":"64Gi","nvidia.com/gpu":")" + std::to_string(gpus) + "\"";
  }
  const auto tenths = static_cast<int>(1 + random.Below(8));
  return R"("cpu":")" + std::to_string(cpu_per_gpu) +
         R"(","memory":"16Gi","berth.dev/gpu-milli":")" + std::to_string(tenths * 100) + "\"";
}

void Print(const char* verb, const std::vector<double>& us) {
  const auto summary = replay::Summarize(us);
  std::vector<double> sorted = us;
  std::ranges::sort(sorted);
  std::printf("%-10s p50 %7.2f ms  p90 %7.2f  p99 %7.2f  p99.9 %7.2f  max %7.2f\n", verb,
              summary.p50 / 1000, replay::Quantile(sorted, 0.9) / 1000, summary.p99 / 1000,
              replay::Quantile(sorted, 0.999) / 1000, summary.max / 1000);
}

}  // namespace

void MeasureFirstPods(std::size_t nodes, std::size_t pods) {
  const BerthServer server(nodes, true);
  auto client = HttpClient::Connect(server.address()).value();
  const std::string names = server.NameList();
  Random random(1);
  Times times;
  for (std::size_t n = 0; n < pods; ++n) {
    const std::string uid = "uid-" + std::to_string(n);
    const std::string body = FilterBody(PodJson(uid, Amounts(random)), names);
    Timed(client, "/extender/filter", body, times.filter_us);
    const std::string scored = Timed(client, "/extender/prioritize", body, times.prioritize_us);
    BERTH_CHECK(http::Post(client, "/extender/bind", BindBody(uid, BestOf(scored))).has_value());
  }
  std::printf("%zu nodes of %d GPUs, the first %zu pods\n", nodes, kGpusPerNode, pods);
  Print("filter", times.filter_us);
  Print("prioritize", times.prioritize_us);
}

}  // namespace berth::load
