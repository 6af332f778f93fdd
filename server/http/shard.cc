// SPDX-License-Identifier: Apache-2.0
#include "server/http/shard.h"

#include <exception>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "server/http/connection.h"

namespace berth::http {

// The concurrency hint 1: one thread runs the loop, though others may post to it.
Shard::Shard(Service& service)
    : service_(service), loop_(1), work_(boost::asio::make_work_guard(loop_)) {
  // The loop opens its own descriptors with its first socket. That happens now, not when a client
  // has taken the last free one.
  const boost::asio::ip::tcp::socket first(loop_);
  thread_ = std::thread([this] { Run(); });
}

// Running out of memory ends one connection (Callback). Here it happened between two connections; a
// connection that got stuck has its deadline.
void Shard::Run() {
  while (true) {
    try {
      loop_.run();
      return;
    } catch (const std::exception&) {
      service_.counters.handler_exceptions.Increment();
    }
  }
}

Shard::~Shard() { Stop(); }

void Shard::Stop() {
  if (thread_.joinable()) {
    CloseAll();
    work_.reset();
    thread_.join();
  }
}

void Shard::CloseIdle() {
  boost::asio::post(loop_, [this] {
    // A copy: a connection that closes removes itself from the set.
    for (Connection* connection : std::vector(connections_.begin(), connections_.end())) {
      connection->CloseIfIdle();
    }
  });
}

void Shard::CloseAll() {
  boost::asio::post(loop_, [this] {
    for (Connection* connection : std::vector(connections_.begin(), connections_.end())) {
      connection->Close();
    }
  });
}

void Shard::Remove(Connection& connection) {
  connections_.erase(&connection);
  service_.open.Decrement();
}

}  // namespace berth::http
