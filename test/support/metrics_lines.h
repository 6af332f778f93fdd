// SPDX-License-Identifier: Apache-2.0
//
// What functions of server/pages/metrics_parts.h write.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/telemetry/metrics.h"

namespace berth::test {

// By a function whose last argument is the text.
template <class Add, class... Args>
std::string Written(Add add, const Args&... args) {
  MetricsText text;
  add(args..., text);
  return text.Take();
}

// The value of the series, as it is written; "" if there is none.
inline std::string ValueOf(const std::string& text, const std::string& series) {
  const std::size_t at = ("\n" + text).find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t start = at + series.size() + 1;
  return text.substr(start, text.find('\n', start) - start);
}

inline void ExpectLines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << " in\n" << text;
  }
}

}  // namespace berth::test
