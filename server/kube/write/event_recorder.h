// SPDX-License-Identifier: Apache-2.0
//
// EventRecorder: reports binds, and why a pod waits, as Events on the pod, where `kubectl describe
// pod` shows them.
//
// Events are a courtesy: they are posted by a thread of their own, at a limited rate, warnings
// first; what exceeds the rate or the queue is dropped and counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/write/work_queue.h"
#include "server/wire/api/writes_json.h"

namespace berth::kube {

// Any thread may call it.
class EventRecorder final : public DecisionSink {
 public:
  // Called on the recorder's thread when the API server takes no events, once for each reason.
  using OnProblem = std::function<void(const std::string& problem)>;

  // References: they outlive the recorder. `instance` names this process.
  EventRecorder(ApiClient& client, const Clock& clock, std::string instance, OnProblem on_problem);

  void Record(const Decision& decision) override;
  void Record(const GangNews& news) override;
  void Record(const PodWaits& news) override;
  void Record(const PodsEvicted& news) override;
  void Record(const RoomNews& news) override;
  // A warning about a pod that no decision is about. reason: CamelCase, a few words.
  void Warn(const PodId& pod, std::string reason, std::string message);

  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(); }

 private:
  static constexpr std::size_t kMostWaiting = 512;
  static constexpr int kBurst = 50;      // events that may go at once
  static constexpr int kPerSecond = 50;  // and after that; pods that wait take 40 (waiting_whys.h)

  // Warnings go to the front.
  void Put(wire::PodEvent event);
  // At the limited rate.
  void Take(wire::PodEvent event);
  void Post(const wire::PodEvent& event);

  ApiClient& client_;
  const Clock& clock_;
  const std::string instance_;
  const OnProblem on_problem_;
  std::atomic<std::uint64_t> dropped_{0};
  // The queue's thread alone.
  double tokens_ = kBurst;
  Instant filled_ = std::chrono::steady_clock::now();
  std::uint64_t posted_ = 0;
  std::string problem_;  // the last one that was reported; empty = all is well since
  WorkQueue<wire::PodEvent> queue_;
};

}  // namespace berth::kube
