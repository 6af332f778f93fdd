// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics_text.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <vector>

namespace berth {

struct MetricsText::Impl {
  using Families = std::vector<prometheus::MetricFamily>;

  void Begin(prometheus::MetricType type, std::string_view name, std::string_view help) {
    Write(begun);
    begun.assign(1, {std::string(name), std::string(help), type, {}});
  }

  void Write(const Families& families) { prometheus::TextSerializer().Serialize(text, families); }

  std::ostringstream text;
  Families begun;  // none or one
};

MetricsText::MetricsText() : impl_(std::make_unique<Impl>()) {}

MetricsText::~MetricsText() = default;

MetricsText& MetricsText::Counter(std::string_view name, std::string_view help) {
  impl_->Begin(prometheus::MetricType::Counter, name, help);
  return *this;
}

MetricsText& MetricsText::Gauge(std::string_view name, std::string_view help) {
  impl_->Begin(prometheus::MetricType::Gauge, name, help);
  return *this;
}

MetricsText& MetricsText::Sample(double value, Labels labels) {
  prometheus::MetricFamily& family = impl_->begun.front();
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  sample.label.reserve(labels.size());
  for (const auto& [name, label] : labels) {
    sample.label.push_back({std::string(name), std::string(label)});
  }
  const bool counts = family.type == prometheus::MetricType::Counter;
  (counts ? sample.counter.value : sample.gauge.value) = value;
  return *this;
}

void MetricsText::Add(const prometheus::Collectable& counted) { impl_->Write(counted.Collect()); }

std::string MetricsText::Take() {
  impl_->Write(impl_->begun);
  return std::move(impl_->text).str();
}

}  // namespace berth
