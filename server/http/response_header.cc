// SPDX-License-Identifier: Apache-2.0
#include "server/http/response_header.h"

#include <array>
#include <charconv>

namespace berth::http {
namespace {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
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
