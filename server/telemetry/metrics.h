// SPDX-License-Identifier: Apache-2.0
//
// Metrics: what is counted where it happens. The gauges of /metrics that are read from other objects
// are in server/pages/metrics_parts.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "server/extender/ports.h"
#include "server/telemetry/metrics_text.h"

namespace berth {

// How an HTTP request for a verb ended.
enum class CallResult {
  kOk,
  kRefused,      // the verb's own error channel, or nothing fits
  kBadRequest,   // 4xx
  kUnavailable,  // 503
};

// The outcome of checking the configuration file for a change.
enum class ReloadResult {
  kApplied,
  kRefused,
  kUnchanged,  // nothing to apply: the same settings, or others that wait for a restart
};

// Any thread may call it.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void CountCall(Verb verb, CallResult result, std::chrono::duration<double> taken);
  // A call that was answered 503 without being decoded.
  void CountUnavailable(Verb verb);
  // Candidates that were refused for that reason, first reason per call only.
  void CountRefusal(Reason reason);

  // What became of a gang.
  void Count(const GangNews& news);

  // How good the links of a pod's GPUs are, relative to the best that were idle (link_report.h).
  void ObserveLinkQuality(std::size_t gpus, double ratio);

  // How long a pod that was bound had waited for it.
  void ObserveWait(const Placement& placement, std::chrono::duration<double> waited);
  // From the first byte of a call to its handler.
  void ObserveArrival(Verb verb, std::chrono::duration<double> taken);

  // The hash of the configuration that is in use from now on, and whether some of it waits for a
  // restart.
  void ShowConfig(std::string_view hash, bool needs_restart);
  // `failed`: whether the current file was refused, so that an older configuration is in use.
  void CountReload(ReloadResult result, bool failed);
  // The share of the recent decisions that a change of the policy would have made differently.
  void ShowDecisionsChanged(double ratio);

  void AddTo(MetricsText& text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth
