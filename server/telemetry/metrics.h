// SPDX-License-Identifier: Apache-2.0
//
// Metrics: what the code counts and shows where something happens, in a registry of prometheus-cpp.
// Metrics that are read from other objects at the scrape are in server/pages/metrics_parts.h.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/extender/ports/ports.h"
#include "server/telemetry/log.h"

namespace prometheus {
class Collectable;
}

namespace berth {

// Pods by the number of their GPUs: the values of the label `size`.
inline constexpr std::array<std::string_view, 4> kGpuSizes = {"2", "3-4", "5-8", "9+"};
constexpr std::size_t GpuSizeOf(std::size_t gpus) {
  return gpus <= 2 ? 0 : gpus <= 4 ? 1 : gpus <= 8 ? 2 : 3;
}

// MetricsText: what one scrape answers, as families of prometheus-cpp. Its TextSerializer writes
// them one by one, and large ones in parts: some hundred kilobytes are held beside the text.
//
// One thread.

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  MetricsText();
  ~MetricsText();

  // Begins a metric; the next samples belong to it. Each name once a scrape.
  MetricsText& Counter(std::string_view name, std::string_view help);
  MetricsText& Gauge(std::string_view name, std::string_view help);
  // Label values may be any text. Integers above 2^53 are rounded, as Prometheus does.
  MetricsText& Sample(std::integral auto value, Labels labels = {}) {
    return Sample(static_cast<double>(value), labels);
  }
  MetricsText& Sample(double value, Labels labels = {});
  // All metrics of a registry. A new metric has to begin after it.
  void Add(const prometheus::Collectable& counted);

  // In Prometheus' text format. Once.
  [[nodiscard]] std::string Take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

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

  void CountCall(Verb verb, CallResult result, std::chrono::duration<double> taken);
  // A call that was answered 503 without being decoded.
  void CountUnavailable(Verb verb);
  // Counts the first reason of a filter call that refused a node.
  void CountRefusal(Reason reason);

  // Counts a gang's plan, abort or start.
  void Count(const GangNews& news);

  // Link quality of a pod's GPUs relative to the best idle set, 0 to 1 (device_fit.h).
  void ObserveLinkQuality(std::size_t gpus, double ratio);

  // Time from the creation of a bound pod to its bind.
  void ObserveWait(const Placement& placement, std::chrono::duration<double> waited);
  // Time from the first byte of a call to the start of its handler.
  void ObserveArrival(Verb verb, std::chrono::duration<double> taken);

  // The hash of the configuration now in use, and whether some settings wait for a restart.
  void ShowConfig(std::string_view hash, bool needs_restart);
  // `failed`: whether the current file was refused and the previous configuration stays in use.
  void CountReload(ReloadResult result, bool failed);
  // The fraction of recent decisions that the last change of policy decides differently, 0 to 1.
  void ShowDecisionsChanged(double ratio);

  void AddTo(MetricsText& text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// DecisionRecorder: decisions go to the log (binds at info, the rest at debug) and to the metrics.

class DecisionRecorder final : public DecisionSink {
 public:
  // References: they outlive the recorder.
  DecisionRecorder(Log& log, Metrics& metrics) : log_(log), metrics_(metrics) {}

  void Record(const Decision& decision) override;
  void Record(const GangNews& news) override;
  void Record(const PodWaits& news) override;
  void Record(const PodsEvicted& news) override;
  void Record(const RoomNews& news) override;

 private:
  Log& log_;
  Metrics& metrics_;
};

// BothSinks: two receivers of every decision.
class BothSinks final : public DecisionSink {
 public:
  // Both outlive the object. second: nullptr where there is none.
  BothSinks(DecisionSink& first, DecisionSink* second) : first_(first), second_(second) {}
  void Record(const Decision& decision) override { Both(decision); }
  void Record(const GangNews& news) override { Both(news); }
  void Record(const PodWaits& news) override { Both(news); }
  void Record(const PodsEvicted& news) override { Both(news); }
  void Record(const RoomNews& news) override { Both(news); }

 private:
  template <class News>
  void Both(const News& news) {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

  DecisionSink& first_;
  DecisionSink* const second_;
};

}  // namespace berth
