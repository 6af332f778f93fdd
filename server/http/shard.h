// SPDX-License-Identifier: Apache-2.0
//
// Shard: one I/O thread with its event loop and the connections that live on it, and Service, what
// all shards of a server have in common.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "base/clock.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace berth::http {

// The running totals of a server. Any thread may count and read.

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

// OpenCount: how many connections are open, and a wait for there being none. Any thread.

// std::mutex rather than berth::Mutex, because the wait needs a time limit. The lock is taken once
// at the beginning and once at the end of a connection, never per request.
class OpenCount {
 public:
  void Increment() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }

  void Decrement() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) {
      none_.notify_all();
    }
  }

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

  // True as soon as there is none; false when `limit` is over.
  bool WaitForNone(Duration limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return none_.wait_until(lock, std::chrono::steady_clock::now() + limit,
                            [this] { return count_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

class Connection;

struct Service {
  HttpServerOptions options;
  HttpHandler handler;
  ServerCounters counters;
  OpenCount open;
  std::atomic<std::size_t> request_bytes{0};
  std::atomic<std::size_t> answer_bytes{0};
  std::atomic<bool> draining{false};
};

class Shard {
 public:
  // The service outlives the shard. Throws what std::thread throws.
  explicit Shard(Service& service);

  // Stops.
  ~Shard();

  // Closes all connections and ends the thread; waits for a handler that runs. A second call does
  // nothing.
  void Stop();

  // Any thread.
  boost::asio::io_context& loop() { return loop_; }
  Service& service() { return service_; }
  void CloseIdle();
  void CloseAll();

  // On the loop's thread. Each connection is added once and removed once.
  void Add(Connection& connection) { connections_.insert(&connection); }
  void Remove(Connection& connection);

  // Memory into which connections of this shard read bytes that are dropped.
  std::array<char, 65536>& scratch() { return scratch_; }

 private:
  void Run();

  Service& service_;
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unordered_set<Connection*> connections_;
  std::array<char, 65536> scratch_{};
  std::thread thread_;
};

}  // namespace berth::http
