// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_classes.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "cluster/values/pod_request.h"

namespace berth {
namespace {

// What a pod asks for, so that the classes come in the order of WaitingClasses.
using Key = std::pair<int, std::string>;

constexpr int kShare = 100, kMig = 101;  // more than a node has GPUs

Key KeyOf(const RequestShape& shape) {
  if (shape.is_share()) return {kShare, "share"};
  if (shape.mig() != nullptr) return {kMig, "MIG"};
  return {shape.gpu_count(), AskText(shape.gpus)};
}

constexpr std::array<std::pair<std::string_view, Duration>, 3> kAges = {
    {{"under 1m", std::chrono::minutes(1)},
     {"under 10m", std::chrono::minutes(10)},
     {"under 1h", std::chrono::hours(1)}}};
constexpr std::string_view kOlder = "1h or more";

struct Waiting {
  std::array<std::int64_t, kAges.size() + 1> by_age{};
  std::optional<Duration> oldest;  // of the pods of known age

  void Add(std::optional<Duration> age) {
    std::size_t bucket = 0;
    while (age && bucket < kAges.size() && *age >= kAges[bucket].second) ++bucket;
    ++by_age[bucket];
    if (age && (!oldest || *age > *oldest)) oldest = age;
  }
};

std::map<Key, Waiting> Classify(std::span<const WaitingPod> pods, WallTime now) {
  std::map<Key, Waiting> classes;
  for (const WaitingPod& pod : pods) {
    if (pod.gated || !pod.pod->shape.wants_gpu()) continue;
    std::optional<Duration> age;
    if (pod.created) age = AgeAt(now, *pod.created);
    classes[KeyOf(pod.pod->shape)].Add(age);
  }
  return classes;
}

}  // namespace

std::vector<wire::WaitingClass> WaitingClasses(std::span<const WaitingPod> pods, WallTime now) {
  std::vector<wire::WaitingClass> told;
  for (const auto& [key, waiting] : Classify(pods, now)) {
    wire::WaitingClass& kind = told.emplace_back();
    kind.asks = key.second;
    for (const std::int64_t count : waiting.by_age) kind.pods += count;
    kind.oldest = waiting.oldest;
  }
  return told;
}

void AddWaitingMetrics(std::span<const WaitingPod> pods, WallTime now, MetricsText& text) {
  std::map<Key, Waiting> classes = Classify(pods, now);
  for (const int gpus : {1, 2, 4, 8}) classes[{gpus, AskText(WholeGpus{gpus})}];
  classes[{kShare, "share"}];
  text.Gauge("berth_waiting_gpu_pods", "Waiting GPU pods by request and age, without gated ones");
  for (const auto& [key, waiting] : classes) {
    for (std::size_t i = 0; i <= kAges.size(); ++i) {
      const std::string_view age = i < kAges.size() ? kAges[i].first : kOlder;
      text.Sample(waiting.by_age[i], {{"asks", key.second}, {"age", age}});
    }
  }
  text.Gauge("berth_waiting_gpu_pod_oldest_seconds",
             "Age of the oldest waiting GPU pod, by request; 0 if none waits");
  for (const auto& [key, waiting] : classes) {
    const Duration oldest = waiting.oldest.value_or(Duration::zero());
    text.Sample(std::chrono::duration<double>(oldest).count(), {{"asks", key.second}});
  }
}

}  // namespace berth
