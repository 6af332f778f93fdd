// SPDX-License-Identifier: Apache-2.0
#include "test/support/raw_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace berth::test {
namespace {

constexpr int kReadPatienceMs = 10'000;

int Connect(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return -1;
  }
  int result = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (result >= 0 && connect(result, found->ai_addr, found->ai_addrlen) != 0) {
    close(result);
    result = -1;
  }
  freeaddrinfo(found);
  const int on = 1;
  if (result >= 0) {
    setsockopt(result, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return result;
}

bool WaitFor(int socket, short events) {
  pollfd poller{socket, events, 0};
  return poll(&poller, 1, kReadPatienceMs) > 0;
}

}  // namespace

std::string RawResponse::Field(std::string_view name) const {
  std::size_t line = header.find("\r\n");
  while (line != std::string::npos && line + 2 < header.size()) {
    line += 2;
    const std::size_t end = header.find("\r\n", line);
    const std::string_view text = std::string_view(header).substr(line, end - line);
    if (text.size() > name.size() && text[name.size()] == ':' &&
        strncasecmp(text.data(), name.data(), name.size()) == 0) {
      const std::size_t value = text.find_first_not_of(' ', name.size() + 1);
      return value == std::string_view::npos ? "" : std::string(text.substr(value));
    }
    line = end;
  }
  return "";
}

bool RawResponse::Has(std::string_view name) const { return !Field(name).empty(); }

RawClient::RawClient(const std::string& host, std::uint16_t port) : socket_(Connect(host, port)) {}

RawClient::~RawClient() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (socket_ < 0 || !WaitFor(socket_, POLLOUT)) {
      return false;
    }
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawClient::ReceiveMore() {
  if (socket_ < 0) {
    return false;
  }
  if (!WaitFor(socket_, POLLIN)) {
    timed_out_ = true;
    return false;
  }
  std::array<char, 65536> bytes{};
  const ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    return false;
  }
  received_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

RawResponse RawClient::ReadHeader() {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::size_t end = received_.find(kEnd);
  while (end == std::string::npos) {
    if (!ReceiveMore()) {
      return {};
    }
    end = received_.find(kEnd);
  }
  RawResponse response;
  response.header = received_.substr(0, end + 2);
  received_.erase(0, end + kEnd.size());
  if (response.header.rfind("HTTP/1.1 ", 0) == 0) {
    response.status = std::atoi(response.header.c_str() + 9);
  }
  return response;
}

RawResponse RawClient::Read() {
  RawResponse response = ReadHeader();
  const auto length =
      static_cast<std::size_t>(std::atoll(response.Field("Content-Length").c_str()));
  while (received_.size() < length) {
    if (!ReceiveMore()) {
      return {};
    }
  }
  response.body = received_.substr(0, length);
  received_.erase(0, length);
  return response;
}

std::string RawClient::ReadToEnd() {
  while (ReceiveMore()) {
  }
  return std::exchange(received_, {}) + (timed_out_ ? "<timeout>" : "");
}

void RawClient::FinishSending() { shutdown(socket_, SHUT_WR); }

void RawClient::Reset() {
  const linger at_once{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close(std::exchange(socket_, -1));
}

std::string Post(std::string_view path, std::string_view body) {
  std::string text = Request(
      "POST", path,
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n");
  text += body;
  return text;
}

std::string Request(std::string_view method, std::string_view path, std::string_view fields) {
  std::string text(method);
  text += ' ';
  text += path;
  text += " HTTP/1.1\r\nHost: berth\r\n";
  text += fields;
  text += "\r\n";
  return text;
}

}  // namespace berth::test
