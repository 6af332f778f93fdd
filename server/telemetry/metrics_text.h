// SPDX-License-Identifier: Apache-2.0
//
// MetricsText: writes metrics in Prometheus' text format.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a metric; the next samples belong to it.
  MetricsText& Counter(std::string_view name, std::string_view help) {
    return Family(name, "counter", help);
  }
  MetricsText& Gauge(std::string_view name, std::string_view help) {
    return Family(name, "gauge", help);
  }
  // Label values may be any text.
  MetricsText& Sample(std::integral auto value, Labels labels = {}) {
    return Add(std::to_string(value), labels);
  }
  MetricsText& Sample(double value, Labels labels = {});
  // Whole metrics, as text.
  void Append(std::string_view metrics) { text_ += metrics; }

  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  MetricsText& Family(std::string_view name, std::string_view type, std::string_view help);
  MetricsText& Add(std::string_view value, Labels labels);

  std::string text_;
  std::string name_;
};

}  // namespace berth
