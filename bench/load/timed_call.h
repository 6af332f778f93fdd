// SPDX-License-Identifier: Apache-2.0
//
// One call of a verb, timed by its client.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/http/http_client.h"
#include "bench/replay/http_calls.h"

namespace berth::load {

struct Times {
  std::vector<double> filter_us, prioritize_us;
};

// Returns the answer; appends its time in microseconds to `us`.
inline std::string Timed(http::HttpClient& client, const char* path, const std::string& body,
                         std::vector<double>& us) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = http::Post(client, path, body);
  us.push_back(
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  BERTH_CHECK(answer.has_value());
  return *std::move(answer);
}

}  // namespace berth::load
