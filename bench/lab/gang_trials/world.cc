// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/world.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "bench/replay/http_calls.h"
#include "bench/replay/text.h"
#include "config/config.h"
#include "bench/http/http_client.h"

namespace berth::gang_trials {
namespace {

std::string MakeNodes(test::FakeApiServer& objects, int nodes) {
  std::string names;
  for (int i = 0; i < nodes; ++i) {
    objects.Put("/api/v1/nodes", test::FakeNode(NodeName(i), kGpusPerNode));
    names.append(i == 0 ? "\"" : ",\"").append(NodeName(i)).append("\"");
  }
  return names;
}

replay::ServerProcess StartBerth(const std::string& program, const std::string& api_url,
                                 std::chrono::seconds hold) {
  Config config = DefaultConfig();
  config.leader_election.enabled = false;
  config.server.drain_seconds = 1;
  config.gangs.hold_seconds = static_cast<int>(hold.count());
  auto berth = replay::ServerProcess::StartBefore(program, config, api_url);
  if (!berth) {
    std::fprintf(stderr, "%s\n", berth.error().message.c_str());
    std::exit(2);
  }
  return *std::move(berth);
}

void AwaitReady(const std::string& address) {
  for (int i = 0; i < 3000; ++i) {
    auto client = http::HttpClient::Connect(address);
    if (client && http::Get(*client, "/readyz")) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::fprintf(stderr, "berth is not ready after 60 s\n");
  std::exit(2);
}

}  // namespace

World::World(const std::string& berth, int nodes, Duration binding, std::chrono::seconds hold)
    : api_(binding),
      names_(MakeNodes(api_.objects(), nodes)),
      berth_(StartBerth(berth, api_.url(), hold)) {
  AwaitReady(address());
}

Duration World::cpu() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(berth_.pid(), &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string NodeName(int number) {
  return "node-" + replay::Padded(static_cast<std::size_t>(number), 10'000);
}

nlohmann::json APod(const std::string& name, int gpus, int cpu_milli) {
  return test::FakePod(name, {{"cpu", std::to_string(cpu_milli) + "m"},
                              {"memory", "1Gi"},
                              {"nvidia.com/gpu", std::to_string(gpus)}});
}

nlohmann::json AMember(const std::string& gang, int number, int members, int gpus, int cpu_milli) {
  nlohmann::json pod = APod(gang + "-" + std::to_string(number), gpus, cpu_milli);
  pod["metadata"]["annotations"] = {{"berth.dev/gang", gang},
                                    {"berth.dev/gang-size", std::to_string(members)}};
  return pod;
}

}  // namespace berth::gang_trials
