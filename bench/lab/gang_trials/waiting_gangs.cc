// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/waiting_gangs.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/lab/gang_trials/world.h"
#include "bench/replay/http_calls.h"
#include "bench/replay/latency.h"
#include "bench/http/http_client.h"

namespace berth::gang_trials {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kPods[] = "/api/v1/pods";
constexpr Duration kBetweenPods = milliseconds(5), kBetweenAsks = milliseconds(10);

// Asks about pods, one after the other, and keeps the times.
class Asker {
 public:
  explicit Asker(World& world)
      : world_(world), client_(http::HttpClient::Connect(world.address()).value()) {}

  // The node of the best score; "": the pod fits nowhere.
  std::string Filter(const Json& pod) {
    const std::string body =
        R"({"Pod":)" + pod.dump() + R"(,"Nodes":null,"NodeNames":[)" + world_.names() + "]}";
    const auto began = std::chrono::steady_clock::now();
    const auto answer = http::Post(client_, "/extender/filter", body);
    ms_.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
            .count());
    BERTH_CHECK(answer.has_value());
    constexpr std::string_view kBegin = R"("NodeNames":[")";
    const std::size_t names = answer->find(kBegin);
    if (names == std::string::npos) return "";
    const std::size_t begin = names + kBegin.size();
    return answer->substr(begin, answer->find('"', begin) - begin);
  }

  void Bind(const Json& pod, const std::string& node) {
    const Json& metadata = pod["metadata"];
    const Json args = {{"PodName", metadata["name"]},
                       {"PodNamespace", "ns"},
                       {"PodUID", metadata["uid"]},
                       {"Node", node}};
    BERTH_CHECK(http::Post(client_, "/extender/bind", args.dump()).has_value());
  }

  // Not of what came before.
  void Forget() { ms_.clear(); }
  [[nodiscard]] const std::vector<double>& ms() const { return ms_; }

 private:
  World& world_;
  http::HttpClient client_;
  std::vector<double> ms_;
};

replay::LatencySummary Print(const char* what, const std::vector<double>& ms) {
  const auto summary = replay::Summarize(ms);
  std::printf("%-52s %6zu filters  p50 %7.2f ms  p99 %7.2f  max %7.2f\n", what, ms.size(),
              summary.p50, summary.p99, summary.max);
  std::fflush(stdout);
  return summary;
}

double Milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Single pods that are created, placed and, twenty pods later, deleted.
void PlaceSingles(World& world, Asker& asker, const std::string& prefix, Duration time) {
  constexpr int kStays = 20;
  const auto end = std::chrono::steady_clock::now() + time;
  const auto name = [&prefix](int i) { return prefix + std::to_string(i); };
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    const Json pod = APod(name(i), 1);
    world.api().objects().Put(kPods, pod);
    const std::string node = asker.Filter(pod);
    if (!node.empty()) asker.Bind(pod, node);
    if (i >= kStays) world.api().objects().Delete(kPods, "ns/" + name(i - kStays));
    std::this_thread::sleep_for(kBetweenPods);
  }
}

// Until berth has seen what was put.
void AwaitSeen(World& world) {
  Asker asker(world);
  const Json pod = APod("seen", 1);
  world.api().objects().Put(kPods, pod);
  const Duration before = world.cpu();
  std::this_thread::sleep_for(seconds(2));
  for (Duration cpu = before; world.cpu() - cpu > milliseconds(200);) {
    cpu = world.cpu();
    std::this_thread::sleep_for(seconds(1));
  }
  world.api().objects().Delete(kPods, "ns/seen");
}

void FillNodes(World& world, int first, int end) {
  for (int i = first; i < end; ++i) {
    Json pod = APod("full-" + std::to_string(i), kGpusPerNode);
    pod["spec"]["nodeName"] = NodeName(i);
    pod["status"]["phase"] = "Running";
    world.api().objects().Put(kPods, pod);
  }
}

// Asks about one after the other, again and again, until it ends.
class Asking {
 public:
  Asking(World& world, std::vector<Json> pods, Duration pause)
      : thread_([this, &world, pods = std::move(pods), pause](const std::stop_token& stop) {
          Asker asker(world);
          for (std::size_t i = 0; !stop.stop_requested(); ++i) {
            asker.Filter(pods[i % pods.size()]);
            std::this_thread::sleep_for(pause);
          }
          ms_ = asker.ms();
        }) {}

  std::vector<double> End() {
    thread_.request_stop();
    thread_.join();
    return ms_;
  }

 private:
  std::vector<double> ms_;
  std::jthread thread_;
};

}  // namespace

void MeasureBeside(const CostOptions& options) {
  constexpr int kGangs = 6, kMembers = 1100;
  const int nodes = options.nodes > 0 ? options.nodes : 5000;
  World world(options.berth, nodes, {});
  FillNodes(world, 0, nodes - kMembers + 100);
  AwaitSeen(world);
  Asker singles(world);
  PlaceSingles(world, singles, "warm-", options.time / 4);
  singles.Forget();
  // Beside others that fit nowhere, as the members later.
  Asking others(world, {APod("large", kGpusPerNode, 1'000'000)}, kBetweenAsks);
  PlaceSingles(world, singles, "alone-", options.time);
  Print("a pod that fits nowhere", others.End());
  const double alone = Print("single pods beside it", singles.ms()).p99;
  std::vector<Json> members;
  for (int i = 0; i < kMembers * kGangs; ++i) {
    const std::string gang = "g" + std::to_string(i % kGangs);
    members.push_back(AMember(gang, i / kGangs, kMembers, kGpusPerNode));
    world.api().objects().Put(kPods, members.back());
  }
  AwaitSeen(world);
  Asking asked(world, members, kBetweenAsks);
  singles.Forget();
  const Duration cpu = world.cpu();
  PlaceSingles(world, singles, "beside-", options.time);
  const double share = Milliseconds(world.cpu() - cpu) / Milliseconds(options.time);
  Print("members of six gangs of 1,100 that wait", asked.End());
  const double beside = Print("single pods beside them", singles.ms()).p99;
  std::printf("beside / alone, p99: %.2f; CPU of berth %.0f %% of one\n", beside / alone,
              share * 100);
}

void MeasureDiffering(const CostOptions& options) {
  constexpr int kMembers = 2000, kAsked = 50;
  World world(options.berth, options.nodes > 0 ? options.nodes : 4000, {});
  AwaitSeen(world);
  const Duration before = world.cpu();
  std::vector<Json> members;
  for (int i = 0; i < kMembers; ++i) {
    members.push_back(AMember("g", i, kMembers, 1, 1000 + i));
    world.api().objects().Put(kPods, members.back());
  }
  AwaitSeen(world);
  const Duration seen = world.cpu() - before;
  Asker asker(world);
  std::vector<double> cpu_ms;
  for (int i = 0; i < kAsked; ++i) {
    const Duration asked = world.cpu();
    asker.Filter(members[static_cast<std::size_t>(i)]);
    cpu_ms.push_back(Milliseconds(world.cpu() - asked));
  }
  Print("members of a gang of 2,000 that differ", asker.ms());
  const auto cpu = replay::Summarize(cpu_ms);
  std::printf("CPU of a filter: the first %.1f ms, p50 %.1f, max %.1f; until they were seen %.0f\n",
              cpu_ms.front(), cpu.p50, cpu.max, Milliseconds(seen));
}

void MeasureLarge(const CostOptions& options) {
  constexpr int kMembers = 8000;
  World world(options.berth, options.nodes > 0 ? options.nodes : 1500, {});
  AwaitSeen(world);
  Asker singles(world);
  PlaceSingles(world, singles, "warm-", options.time / 4);
  singles.Forget();
  PlaceSingles(world, singles, "alone-", options.time);
  const double alone = Print("single pods alone", singles.ms()).p99;
  std::vector<Json> members;
  for (int i = 0; i < kMembers; ++i) {
    members.push_back(AMember("g", i, kMembers));
    world.api().objects().Put(kPods, members.back());
  }
  AwaitSeen(world);
  Asking asked(world, members, kBetweenAsks);
  singles.Forget();
  PlaceSingles(world, singles, "beside-", options.time);
  Print("members of a gang of 8,000", asked.End());
  const double beside = Print("single pods beside them", singles.ms()).p99;
  std::printf("beside / alone, p99: %.2f\n", beside / alone);
}

}  // namespace berth::gang_trials
