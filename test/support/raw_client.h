// SPDX-License-Identifier: Apache-2.0
//
// RawClient: a TCP client for tests that sends exactly the bytes that a test gives it, valid or
// not, and takes answers apart just far enough to count them. Every wait ends after 10 s at the
// latest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace berth::test {

struct RawResponse {
  int status = 0;  // 0: there was no (complete) response
  std::string header;
  std::string body;

  // The value of the field, "" if there is none. Case does not matter.
  [[nodiscard]] std::string Field(std::string_view name) const;
  [[nodiscard]] bool Has(std::string_view name) const;
};

// Not thread-safe; movable. Failures to connect or send show as responses with status 0.
class RawClient {
 public:
  // host is a numeric address of either family.
  RawClient(const std::string& host, std::uint16_t port);
  ~RawClient();
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}
  RawClient& operator=(RawClient&&) = delete;

  [[nodiscard]] bool connected() const { return socket_ >= 0; }

  // False if the server does not take the bytes.
  bool Send(std::string_view bytes);

  // The next response: its header and as many bytes as Content-Length says.
  RawResponse Read();

  // The next response to a HEAD request, or an interim response: the header alone.
  RawResponse ReadHeader();

  // Everything until the server closes; the text ends with "<timeout>" if it does not.
  std::string ReadToEnd();

  // True if the server closes the connection (or has) and there is nothing left to read.
  bool ReachesEnd() { return ReadToEnd().empty(); }

  void FinishSending();  // half-close
  void Reset();          // leaves with a reset instead of a farewell

 private:
  bool ReceiveMore();

  int socket_ = -1;
  std::string received_;
  bool timed_out_ = false;
};

// "POST PATH HTTP/1.1" with Host and Content-Length, and the body.
std::string Post(std::string_view path, std::string_view body);

// "METHOD PATH HTTP/1.1" with Host and the fields, each of which ends with \r\n, and no body.
std::string Request(std::string_view method, std::string_view path, std::string_view fields = "");

}  // namespace berth::test
