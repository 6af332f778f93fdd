// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics_text.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <vector>

namespace berth {
namespace {

// A family may have a sample for each GPU of the cluster, and a sample takes several times the
// bytes of its text.
constexpr std::size_t kMostSamples = 1024;

}  // namespace

struct MetricsText::Impl {
  using Families = std::vector<prometheus::MetricFamily>;

  void Begin(prometheus::MetricType type, std::string_view name, std::string_view help) {
    WriteSamples();
    begun.assign(1, {std::string(name), std::string(help), type, {}});
    is_new = true;
  }

  // Those that are held. More of the family may follow: its type is said once.
  void WriteSamples() {
    if (begun.empty()) return;
    prometheus::MetricFamily& family = begun.front();
    const std::size_t start = text.size();
    Write(begun);
    if (!is_new) text.erase(start, text.find('\n', start) + 1 - start);
    family.metric.clear();
    family.help.clear();  // without it the serializer leaves the line out
    is_new = false;
  }

  void Write(const Families& families) {
    std::ostringstream written;
    prometheus::TextSerializer().Serialize(written, families);
    text += written.view();
  }

  std::string text;
  Families begun;  // none or one
  bool is_new = false;
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
  if (family.metric.size() == kMostSamples) impl_->WriteSamples();
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  sample.label.reserve(labels.size());
  for (const auto& [name, label] : labels) {
    sample.label.push_back({std::string(name), std::string(label)});
  }
  const bool counts = family.type == prometheus::MetricType::Counter;
  (counts ? sample.counter.value : sample.gauge.value) = value;
  return *this;
}

void MetricsText::Add(const prometheus::Collectable& counted) {
  impl_->WriteSamples();
  impl_->begun.clear();
  impl_->Write(counted.Collect());
}

std::string MetricsText::Take() {
  impl_->WriteSamples();
  return std::move(impl_->text);
}

}  // namespace berth
