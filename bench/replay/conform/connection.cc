// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/conform/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <limits>

namespace berth::conform {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;

Result<ExtenderUrl> ParseExtenderUrl(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const auto wrong = [&url] {
    return Invalid("want http://HOST:PORT/PREFIX (without TLS), got \"" + url + "\"");
  };
  if (!url.starts_with(kScheme)) return wrong();
  const std::string rest = url.substr(kScheme.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  ExtenderUrl result{rest.substr(0, slash), "80", rest.substr(slash)};
  while (result.prefix.ends_with('/')) result.prefix.pop_back();
  const std::size_t colon = result.host.rfind(':');
  if (colon != std::string::npos && !result.host.ends_with(']')) {
    result.port = result.host.substr(colon + 1);
    result.host.resize(colon);
  }
  if (result.host.starts_with('[') && result.host.ends_with(']')) {
    result.host = result.host.substr(1, result.host.size() - 2);
  }
  const bool is_number = result.port.find_first_not_of("0123456789") == std::string::npos;
  if (result.host.empty() || result.port.empty() || !is_number) return wrong();
  return result;
}

// Starts it, and waits until it ends. Returns why it failed; "": it did not.
template <class Start>
std::string Connection::Wait(const Start& start) {
  ErrorCode outcome;
  stream_.expires_after(patience_);
  start([&outcome](const ErrorCode& code, const auto&...) { outcome = code; });
  context_.restart();
  context_.run();
  if (outcome == beast::error::timeout) {
    return "nothing came for " + std::to_string(patience_.count()) + " ms";
  }
  if (outcome == beast::http::error::end_of_stream || outcome == asio::error::eof) {
    return std::string(kConnectionClosed);
  }
  return outcome ? outcome.message() : "";
}

Connection::Connection(const ExtenderUrl& url, std::chrono::milliseconds patience)
    : patience_(patience) {
  ErrorCode code;
  const auto found = asio::ip::tcp::resolver(context_).resolve(url.host, url.port, code);
  problem_ = code ? code.message() : Wait([&](auto then) { stream_.async_connect(found, then); });
  if (problem_.empty()) stream_.socket().set_option(asio::ip::tcp::no_delay(true), code);
}

void Connection::Send(std::string_view bytes) {
  if (!problem_.empty()) return;
  Wait([&](auto then) { asio::async_write(stream_, asio::buffer(bytes), then); });
}

HttpAnswer Connection::Read(bool of_head) {
  if (!problem_.empty()) return {0, problem_, "", "", ""};
  beast::http::response_parser<beast::http::string_body> parser;
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  parser.skip(of_head);
  std::string problem =
      Wait([&](auto then) { beast::http::async_read(stream_, buffer_, parser, then); });
  if (!problem.empty()) return {0, std::move(problem), "", "", ""};
  auto& answer = parser.get();
  return {static_cast<int>(answer.result_int()), "", std::string(answer["Allow"]),
          std::string(answer["Content-Encoding"]), std::move(answer.body())};
}

bool Connection::IsClosed() {
  char byte = 0;
  const std::string end =
      Wait([&](auto then) { stream_.async_read_some(asio::buffer(&byte, 1), then); });
  return !end.empty() && !end.starts_with("nothing came");
}

void Connection::Reset() {
  ErrorCode ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.socket().close(ignored);
}

}  // namespace berth::conform
