// SPDX-License-Identifier: Apache-2.0
//
// ApiPodEvictor: evicts pods by the API server's Eviction (policy/v1), which keeps
// PodDisruptionBudgets and gives the pod its time to end.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/extender/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"

namespace berth::kube {

// Any thread may call it.
class ApiPodEvictor final : public PodEvictor {
 public:
  static constexpr Duration kMostPerEviction = std::chrono::seconds(2);

  // Called on the thread that evicts when a pod cannot be evicted and no budget is the cause, once
  // for each kind of refusal.
  using OnProblem = std::function<void(const std::string& problem)>;

  // References: they outlive the evictor.
  ApiPodEvictor(ApiClient& client, const Clock& clock, WriteFence& fence, OnProblem on_problem)
      : client_(client), clock_(clock), fence_(fence), on_problem_(std::move(on_problem)) {}

  // One attempt, which takes kMostPerEviction at most. None while another process leads.
  Outcome Evict(const PodId& pod) override BERTH_EXCLUDES(mutex_);

 private:
  void Report(const std::string& problem) BERTH_EXCLUDES(mutex_);

  ApiClient& client_;
  const Clock& clock_;
  WriteFence& fence_;
  const OnProblem on_problem_;
  Mutex mutex_;
  std::string problem_ BERTH_GUARDED_BY(mutex_);  // the kind of the last one that was reported
};

}  // namespace berth::kube
