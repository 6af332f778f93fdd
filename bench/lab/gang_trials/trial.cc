// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/trial.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/lab/gang_trials/world.h"
#include "bench/replay/http_calls.h"
#include "bench/http/http_client.h"

namespace berth::gang_trials {
namespace {

// For so much longer than a hold kube-scheduler waits for the answer to a bind, as in manifests/.
constexpr Duration kBeyondHold = std::chrono::seconds(10);

Instant SteadyNow() { return std::chrono::steady_clock::now(); }

// Which members are bound, and when the first and the last of them was.
class Progress {
 public:
  void Bound(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (bound_.empty()) first_ = SteadyNow();
    last_ = SteadyNow();
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
    const Instant end = result.whole ? last_ : SteadyNow();
    result.in_part = end - first_;
    result.until_whole = end - arrived;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> bound_;
  Instant first_{}, last_{};
};

// Returns when the last of them has come.
Instant MakeMembers(const TrialOptions& options, SlowApi& api, SmallScheduler& scheduler) {
  const Instant began = SteadyNow();
  Random random(options.seed);
  std::vector<Duration> times;
  for (int i = 0; i < options.members; ++i) {
    times.push_back(std::chrono::duration_cast<Duration>(options.arrival * random.Unit()));
  }
  std::ranges::sort(times);
  for (int i = 0; i < options.members; ++i) {
    std::this_thread::sleep_until(began + times[static_cast<std::size_t>(i)]);
    const nlohmann::json pod = AMember("train", i, options.members);
    api.objects().Put("/api/v1/pods", pod);
    scheduler.Arrived(pod["metadata"]["name"], pod.dump());
  }
  return SteadyNow();
}

std::string GangsOf(const std::string& address) {
  auto client = http::HttpClient::Connect(address);
  if (!client) return client.error().message;
  const auto gangs = http::Get(*client, "/debug/gangs");
  return gangs ? *gangs : gangs.error().message;
}

}  // namespace

Duration TimeOfBindings(int members, Duration binding, int at_a_time) {
  return binding * (1 + (members - 1 + at_a_time - 1) / at_a_time);
}

TrialResult TryGang(const TrialOptions& options) {
  // Room for all members and a few more.
  World world(options.berth, options.members / kGpusPerNode + options.members / 64 + 2,
              options.binding, options.hold);
  TrialResult result;
  Progress progress;
  {
    SmallScheduler scheduler(world.address(), world.names(), options.cycle,
                             options.hold + kBeyondHold);
    world.api().Tell({.bound =
                          [&](const std::string& pod) {
                            progress.Bound(pod);
                            scheduler.Assigned(pod);
                          },
                      .woken = [&](const std::string& pod) { scheduler.Woken(pod); }});
    const Instant arrived = MakeMembers(options, world.api(), scheduler);
    const Duration bindings = TimeOfBindings(options.members, options.binding, options.at_a_time);
    progress.Await(static_cast<std::size_t>(options.members),
                   arrived + options.cycle * options.members + bindings + options.patience);
    progress.Report(options, arrived, result);
    world.api().Tell({});
    result.scheduler = scheduler.counts();
    if (!result.whole) result.gangs = GangsOf(world.address());
  }
  result.cpu = world.cpu();
  result.double_grants = world.api().objects().double_grants();
  return result;
}

}  // namespace berth::gang_trials
