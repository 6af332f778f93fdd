// SPDX-License-Identifier: Apache-2.0
//
// ApiPodWaker: has kube-scheduler ask again about pods, by a condition on their status
// (wire/wake_json.h), with a thread of its own.
//
// It is the one thing that Berth writes to a pod that is not bound. Where it has no right to do so
// it says that once and goes on: pods are then asked about again after the next event of the
// cluster, or some minutes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/extender/ports.h"
#include "server/kube/api_client.h"
#include "server/kube/write_fence.h"

namespace berth::kube {

// Any thread may call it.
class ApiPodWaker final : public PodWaker {
 public:
  // Called on the waker's thread when a pod cannot be woken, once for each reason.
  using OnProblem = std::function<void(const std::string& problem)>;

  // References: they outlive the waker.
  ApiPodWaker(ApiClient& client, const Clock& clock, const WriteFence& fence, OnProblem on_problem);
  // Wakes nobody more.
  ~ApiPodWaker() override;

  // A pod that is gone or bound by then is left alone, and so are all while another process leads.
  void Wake(const PodId& pod) override BERTH_EXCLUDES(mutex_);

  struct Stats {
    std::uint64_t woken = 0;
    std::uint64_t failed = 0;
  };
  [[nodiscard]] Stats stats() const { return {woken_.load(), failed_.load()}; }

 private:
  static constexpr std::size_t kMostWaiting = 1024;
  static constexpr int kAttempts = 3;

  void Run() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool Next(PodId& pod) BERTH_EXCLUDES(mutex_);
  void Post(const PodId& pod) BERTH_EXCLUDES(mutex_);

  ApiClient& client_;
  const Clock& clock_;
  const WriteFence& fence_;
  const OnProblem on_problem_;
  std::atomic<std::uint64_t> woken_{0}, failed_{0};
  Mutex mutex_;
  CondVar changed_;
  std::deque<PodId> waiting_ BERTH_GUARDED_BY(mutex_);
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::string problem_;  // the kind of the last one that was told of; of the thread alone
  std::thread thread_;
};

}  // namespace berth::kube
