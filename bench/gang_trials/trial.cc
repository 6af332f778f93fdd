// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_trials/trial.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/gang_trials/slow_api.h"
#include "bench/replay/server_process.h"
#include "bench/replay/text.h"
#include "config/config.h"
#include "server/http/http_client.h"

namespace berth::gang_trials {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Json = nlohmann::json;

constexpr int kGpusPerNode = 8;
// As many of them at a time as `berth serve` makes (server/serve.cc).
constexpr int kBindThreads = 32;

Instant Now() { return std::chrono::steady_clock::now(); }

// Which members are bound, and when the first and the last of them was.
class Progress {
 public:
  void Bound(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (bound_.empty()) first_ = Now();
    last_ = Now();
    bound_.insert(name);
    changed_.notify_all();
  }

  // Until so many are, or the time is over.
  void Await(std::size_t count, Instant until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [&] { return bound_.size() >= count; });
  }

  void Report(const TrialOptions& options, Instant arrived, TrialResult& result) const {
    const std::lock_guard lock(mutex_);
    result.bound = static_cast<int>(bound_.size());
    result.whole = result.bound == options.members;
    if (bound_.empty()) return;
    const Instant end = result.whole ? last_ : Now();
    result.in_part = end - first_;
    result.until_whole = end - arrived;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> bound_;
  Instant first_{}, last_{};
};

Config ConfigOfTrial() {
  Config config = DefaultConfig();
  config.leader_election.enabled = false;
  config.server.drain_seconds = 1;
  return config;
}

Status AwaitReady(const std::string& address) {
  const Instant end = Now() + seconds(30);
  while (Now() < end) {
    auto client = http::HttpClient::Connect(address);
    if (client && client->Get("/readyz")) return {};
    std::this_thread::sleep_for(milliseconds(20));
  }
  return Fail(Errc::kUnavailable, "berth is not ready after 30 s");
}

// Room for all members and a few more.
std::string MakeNodes(test::FakeApiServer& objects, int members) {
  const int nodes = members / kGpusPerNode + members / 64 + 2;
  std::string names;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "node-" + replay::Padded(static_cast<std::size_t>(i), 10'000);
    objects.Put("/api/v1/nodes", test::FakeNode(name, kGpusPerNode));
    names.append(i == 0 ? "\"" : ",\"").append(name).append("\"");
  }
  return names;
}

Json Member(int number, int members) {
  Json pod = test::FakePod("m-" + std::to_string(number),
                           {{"cpu", "4"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}});
  pod["metadata"]["annotations"] = {{"berth.dev/gang", "train"},
                                    {"berth.dev/gang-size", std::to_string(members)}};
  return pod;
}

// Returns when the last of them has come.
Instant MakeMembers(const TrialOptions& options, SlowApi& api, SmallScheduler& scheduler) {
  const Instant began = Now();
  Random random(options.seed);
  std::vector<Duration> times;
  for (int i = 0; i < options.members; ++i) {
    times.push_back(std::chrono::duration_cast<Duration>(options.arrival * random.Unit()));
  }
  std::ranges::sort(times);
  for (int i = 0; i < options.members; ++i) {
    std::this_thread::sleep_until(began + times[static_cast<std::size_t>(i)]);
    const Json pod = Member(i, options.members);
    api.objects().Put("/api/v1/pods", pod);
    scheduler.Arrived(pod["metadata"]["name"], pod.dump());
  }
  return Now();
}

std::string GangsOf(const std::string& address) {
  auto client = http::HttpClient::Connect(address);
  if (!client) return client.error().message;
  const auto gangs = client->Get("/debug/gangs");
  return gangs ? *gangs : gangs.error().message;
}

}  // namespace

Duration TimeOfBindings(int members, Duration binding, int at_a_time) {
  return binding * (1 + (members - 1 + at_a_time - 1) / at_a_time);
}

Result<TrialResult> TryGang(const TrialOptions& options) {
  SlowApi api(options.binding);
  const std::string names = MakeNodes(api.objects(), options.members);
  BERTH_TRY(replay::ServerProcess berth,
            replay::ServerProcess::StartBefore(options.berth, ConfigOfTrial(), api.url()));
  BERTH_TRY_STATUS(AwaitReady(berth.address()));
  TrialResult result;
  Progress progress;
  {
    SmallScheduler scheduler(berth.address(), names);
    api.Tell({.bound =
                  [&](const std::string& pod) {
                    progress.Bound(pod);
                    scheduler.Assigned(pod);
                  },
              .woken = [&](const std::string& pod) { scheduler.Woken(pod); }});
    const Instant arrived = MakeMembers(options, api, scheduler);
    const Duration bindings = TimeOfBindings(options.members, options.binding, kBindThreads);
    progress.Await(static_cast<std::size_t>(options.members),
                   arrived + bindings + options.patience);
    progress.Report(options, arrived, result);
    api.Tell({});
    result.scheduler = scheduler.counts();
    if (!result.whole) result.gangs = GangsOf(berth.address());
  }
  result.double_grants = api.objects().double_grants();
  return result;
}

}  // namespace berth::gang_trials
