// SPDX-License-Identifier: Apache-2.0
#include "bench/http/http_client.h"

#include <array>
#include <limits>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace berth::http {

namespace beast = boost::beast;
using tcp = boost::asio::ip::tcp;

struct HttpClient::Impl {
  explicit Impl(std::string address) : host(std::move(address)) {}

  const std::string host;
  boost::asio::io_context context;
  tcp::socket socket{context};
  beast::flat_buffer buffer;
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

Result<HttpClient> HttpClient::Connect(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Invalid("want HOST:PORT, got \"" + address + "\"");
  auto impl = std::make_unique<Impl>(address);
  boost::system::error_code code;
  tcp::resolver resolver(impl->context);
  const auto endpoints =
      resolver.resolve(address.substr(0, colon), address.substr(colon + 1), code);
  if (!code) boost::asio::connect(impl->socket, endpoints, code);
  if (!code) impl->socket.set_option(tcp::no_delay(true), code);
  if (code) return Fail(Errc::kUnavailable, address + ": " + code.message());
  return HttpClient(std::move(impl));
}

Result<HttpClient::Answer> HttpClient::Ask(const char* method, std::string_view path,
                                           const std::string& body) {
  const std::string head =
      std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: " + impl_->host +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n";
  const std::array<boost::asio::const_buffer, 2> parts = {boost::asio::buffer(head),
                                                          boost::asio::buffer(body)};
  boost::system::error_code code;
  boost::asio::write(impl_->socket, parts, code);
  beast::http::response_parser<beast::http::string_body> parser;
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  if (!code) beast::http::read(impl_->socket, impl_->buffer, parser, code);
  if (code) return Fail(Errc::kUnavailable, std::string(path) + ": " + code.message());
  return Answer{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

}  // namespace berth::http
