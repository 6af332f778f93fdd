// SPDX-License-Identifier: Apache-2.0
#include "server/http/ask.h"

#include <cstdint>
#include <limits>
#include <utility>

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace berth::http {

Result<Answer> Ask(const std::string& address, const std::string& method, const std::string& path,
                   const std::string& body) {
  namespace beast = boost::beast;
  boost::asio::io_context context;
  beast::tcp_stream stream(context);
  boost::system::error_code code;
  const std::size_t colon = address.rfind(':');
  const auto endpoints = boost::asio::ip::tcp::resolver(context).resolve(
      address.substr(0, colon), address.substr(colon + 1), code);
  if (!code) stream.connect(endpoints, code);
  if (code) return Fail(Errc::kUnavailable, address + ": " + code.message());
  beast::http::request<beast::http::string_body> request(beast::http::string_to_verb(method), path,
                                                         11, body);
  request.set(beast::http::field::host, address);
  request.set(beast::http::field::content_type, "application/json");
  request.prepare_payload();
  beast::http::response_parser<beast::http::string_body> answer;
  answer.body_limit(std::numeric_limits<std::uint64_t>::max());
  beast::flat_buffer buffer;
  beast::http::write(stream, request, code);
  if (!code) beast::http::read(stream, buffer, answer, code);
  if (code) return Fail(Errc::kUnavailable, path + ": " + code.message());
  return Answer{static_cast<int>(answer.get().result_int()), std::move(answer.get().body())};
}

}  // namespace berth::http
