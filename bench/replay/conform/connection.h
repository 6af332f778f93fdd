// SPDX-License-Identifier: Apache-2.0
//
// Connection: one TCP connection to an extender that sends exactly the bytes it is given. It waits
// for each step no longer than its patience.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::conform {

// Of http://HOST[:PORT]/PREFIX.
struct ExtenderUrl {
  std::string host, port, prefix;  // the prefix has no slash at its end
};
Result<ExtenderUrl> ParseExtenderUrl(const std::string& url);

inline constexpr std::string_view kConnectionClosed = "the connection was closed";

struct HttpAnswer {
  int status = 0;       // 0: there was none
  std::string problem;  // why there was none
  std::string allow, encoding, body;
};

// Not thread-safe.
class Connection {
 public:
  Connection(const ExtenderUrl& url, std::chrono::milliseconds patience);

  // Why there is no connection; "": there is one.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // What the extender does not take shows in the answer.
  void Send(std::string_view bytes);
  // The next answer. of_head: it answers a HEAD, so it has no body.
  HttpAnswer Read(bool of_head = false);
  bool IsClosed();  // by the extender, within the patience
  void Reset();     // leaves without a farewell

 private:
  template <class Start>
  std::string Wait(const Start& start);

  const std::chrono::milliseconds patience_;
  boost::asio::io_context context_;
  boost::beast::tcp_stream stream_{context_};
  boost::beast::flat_buffer buffer_;
  std::string problem_;
};

}  // namespace berth::conform
