// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_text.h"

namespace berth {

MetricsText& MetricsText::Family(std::string_view name, std::string_view type,
                                 std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  return *this;
}

MetricsText& MetricsText::Add(std::string_view value, Labels labels) {
  text_ += name_;
  const char* separator = "{";
  for (const auto& [key, label] : labels) {
    text_.append(separator).append(key).append("=\"").append(label).append("\"");
    separator = ",";
  }
  if (labels.size() > 0) text_ += '}';
  text_.append(" ").append(value).append("\n");
  return *this;
}

}  // namespace berth
