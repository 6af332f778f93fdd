// SPDX-License-Identifier: Apache-2.0
//
// Metrics: what /metrics shows. Labels are bounded (verb, result, reason code, GPU model).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cluster/snapshot.h"
#include "server/extender/ports.h"

namespace berth {

// "filter", "prioritize", ...
std::string_view NameOf(Verb verb);

// How an HTTP request for a verb ended.
enum class CallResult {
  kOk,
  kRefused,      // the verb's own error channel, or nothing fits
  kBadRequest,   // 4xx
  kUnavailable,  // 503
};

// Any thread may call it.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void CountCall(Verb verb, CallResult result, std::chrono::duration<double> taken);
  // A call that was answered 503 without being looked at.
  void CountUnavailable(Verb verb);
  // Candidates that were refused for that reason, first reason per call only.
  void CountRefusal(Reason reason);

  // Prometheus text format, the cluster's gauges taken from the snapshot.
  [[nodiscard]] std::string Text(const Snapshot& snapshot);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
