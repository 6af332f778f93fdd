// SPDX-License-Identifier: Apache-2.0
//
// MetricsText: what one scrape answers, as families of prometheus-cpp. Its TextSerializer writes
// them one by one, and large ones in parts: some hundred kilobytes are held beside the text.
//
// One thread.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace prometheus {
class Collectable;
}

namespace berth {

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  MetricsText();
  ~MetricsText();
  MetricsText(const MetricsText&) = delete;
  MetricsText& operator=(const MetricsText&) = delete;

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

}  // namespace berth
