// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_message.h"

#include <array>
#include <atomic>
#include <charconv>
#include <exception>
#include <utility>

#include <boost/beast/http/status.hpp>

#include "base/text.h"

namespace berth::http {
namespace {

// Strangers' bytes end up in these messages, so everything that JSON or a terminal could stumble
// over is replaced rather than escaped.
constexpr std::size_t kMostMessageBytes = 1000;

char Printable(char c) { return c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c; }

// Beast has the phrases of before RFC 9110, which renamed these two.
std::string_view ReasonPhrase(int status) {
  if (status == 413) return "Content Too Large";
  if (status == 422) return "Unprocessable Content";
  const auto phrase =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {phrase.data(), phrase.size()};
}

void AppendNumber(std::string& out, std::size_t number) {
  std::array<char, 24> digits{};
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

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

void FormatResponseHeader(const HttpResponse& response, AfterResponse after, std::string& header) {
  header = "HTTP/1.1 ";
  AppendNumber(header, static_cast<std::size_t>(response.status));
  header += ' ';
  header += ReasonPhrase(response.status);
  header += "\r\n";
  if (!response.content_type.empty()) {
    AppendField(header, "Content-Type", response.content_type);
  }
  if (!response.allow.empty()) {
    AppendField(header, "Allow", response.allow);
  }
  if (response.gzip) {
    AppendField(header, "Content-Encoding", "gzip");
  }
  if (!response.etag.empty()) {
    AppendField(header, "ETag", response.etag);
    // The client asks again each time, with this tag.
    AppendField(header, "Cache-Control", "no-cache");
    AppendField(header, "Vary", "Accept-Encoding");
  }
  if (!response.policy.empty()) {
    AppendField(header, "Content-Security-Policy", response.policy);
    AppendField(header, "X-Content-Type-Options", "nosniff");
    AppendField(header, "Referrer-Policy", "no-referrer");
  }
  if (after != AfterResponse::kKeepAlive) {
    AppendField(header, "Connection", after == AfterResponse::kClose ? "close" : "keep-alive");
  }
  if (response.status != 304) {  // has no body; a length would be that of the 200
    header += "Content-Length: ";
    AppendNumber(header, BodyOf(response).size());
    header += "\r\n";
  }
  header += "\r\n";
}

}  // namespace berth::http
