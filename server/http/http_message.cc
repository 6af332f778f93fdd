// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_message.h"

#include <atomic>
#include <exception>
#include <utility>

#include "base/text.h"

namespace berth::http {
namespace {

// Strangers' bytes end up in these messages, so everything that JSON or a terminal could stumble
// over is replaced rather than escaped.
constexpr std::size_t kMostMessageBytes = 1000;

char Printable(char c) { return c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c; }

}  // namespace

// Sends once; 500 when it goes without having sent.
class Reply::Once {
 public:
  Once(std::function<void(HttpResponse)> send, std::function<bool()> waits)
      : send_(std::move(send)), waits_(std::move(waits)) {}
  ~Once() {
    try {
      Send(ErrorResponse(500, "internal error"));
    } catch (const std::exception&) {  // out of memory: the connection's deadline ends it
    }
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  void Send(HttpResponse response) {
    if (!sent_.exchange(true)) send_(std::move(response));
  }
  [[nodiscard]] bool waits() const { return !waits_ || waits_(); }

 private:
  const std::function<void(HttpResponse)> send_;
  const std::function<bool()> waits_;
  std::atomic<bool> sent_{false};
};

Reply::Reply(std::function<void(HttpResponse)> send, std::function<bool()> waits)
    : once_(std::make_shared<Once>(std::move(send), std::move(waits))) {}

void Reply::operator()(HttpResponse response) const { once_->Send(std::move(response)); }

bool Reply::waits() const { return once_->waits(); }

HttpResponse ErrorResponse(int status, std::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = R"({"error":")";
  for (const char c : Shortened(message, kMostMessageBytes)) {
    response.body += Printable(c);
  }
  response.body += R"("})";
  return response;
}

}  // namespace berth::http
