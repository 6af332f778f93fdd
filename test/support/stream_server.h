// SPDX-License-Identifier: Apache-2.0
//
// StreamServer: a small API server for tests: HTTP/1.1 with or without TLS on 127.0.0.1 (or
// [::1]), one thread per connection, answers in chunks of one's own making, with every way to
// misbehave. Blocking.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "test/support/test_certificates.h"

namespace berth::test {

struct StreamRequest {
  std::string method, target, body, user_agent, content_type;
  std::string token;   // of "Authorization: Bearer TOKEN"
  std::string host;    // the header
  std::string client;  // the subject of the client's certificate, "" = none
  int connection = 0;  // counted from 0
};

// How a handler answers. All block; false: the client is gone, or the server is being closed.
class StreamReply {
 public:
  virtual ~StreamReply() = default;
  // A whole answer; `header` is "Name: value\r\n" or several of them.
  virtual bool Whole(int status, std::string_view body, std::string_view header = "") = 0;
  virtual bool BeginChunks(int status = 200) = 0;
  virtual bool Chunk(std::string_view bytes) = 0;
  virtual bool EndChunks() = 0;
  virtual void Cut() = 0;   // closes the connection
  virtual void Hang() = 0;  // says nothing until the client is gone or the server is being closed
};

struct StreamServerOptions {
  const Identity* identity = nullptr;   // null: plain HTTP
  const Identity* client_ca = nullptr;  // clients may show a certificate of it; others are refused
  bool ipv6 = false;                    // on [::1] instead of 127.0.0.1
};

class StreamServer {
 public:
  using Handler = std::function<void(const StreamRequest&, StreamReply&)>;

  // The handler runs on the connections' threads.
  StreamServer(const StreamServerOptions& options, Handler handler);
  ~StreamServer();  // closes every connection
  StreamServer(const StreamServer&) = delete;
  StreamServer& operator=(const StreamServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] int open_connections() const;
  [[nodiscard]] int accepted() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::test
