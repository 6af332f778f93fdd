// SPDX-License-Identifier: Apache-2.0
//
// The running totals of a server. Any thread may count and read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/http/http_server.h"

namespace berth::http {

class Counter {
 public:
  void Increment() { value_.fetch_add(1, std::memory_order_relaxed); }
  void Decrement() { value_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct ServerCounters {
  Counter accepted;
  Counter refused_connections;
  Counter requests;
  std::array<Counter, 6> responses_by_class;
  Counter refused_requests;
  Counter timeouts;
  Counter handler_exceptions;
  Counter tls_handshake_failures;
  std::atomic<std::int64_t> certificate_expires{0};  // as in HttpServerStats
};

}  // namespace berth::http
