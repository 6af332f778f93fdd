// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics_text.h"

#include <array>
#include <charconv>

namespace berth {
namespace {

// Escaped as the text format requires inside of quotes.
void AppendEscaped(std::string_view label, std::string& text) {
  for (const char c : label) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
}

}  // namespace

MetricsText& MetricsText::Family(std::string_view name, std::string_view type,
                                 std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  return *this;
}

MetricsText& MetricsText::Sample(double value, Labels labels) {
  std::array<char, 400> digits{};  // of the largest double, too
  const char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed)
          .ptr;
  return Add({digits.data(), end}, labels);
}

MetricsText& MetricsText::Add(std::string_view value, Labels labels) {
  text_ += name_;
  const char* separator = "{";
  for (const auto& [key, label] : labels) {
    text_.append(separator).append(key).append("=\"");
    AppendEscaped(label, text_);
    text_ += '"';
    separator = ",";
  }
  if (labels.size() > 0) text_ += '}';
  text_.append(" ").append(value).append("\n");
  return *this;
}

}  // namespace berth
