// SPDX-License-Identifier: Apache-2.0
//
// Shard: one I/O thread with its event loop and the connections that live on it, and Service, what
// all shards of a server have in common.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <unordered_set>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "server/http/http_message.h"
#include "server/http/http_server.h"
#include "server/http/server_counters.h"

namespace berth::http {

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
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

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
