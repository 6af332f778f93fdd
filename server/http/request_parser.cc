// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

namespace berth::http {
namespace {

namespace beast = boost::beast;
using beast::http::field;
using BeastView = beast::string_view;

// The shortest end of a chunked body: "0\r\n\r\n". Beast asserts that it sees as much at once, and
// what is left of a chunked body is never shorter, so the parser is not called with less.
constexpr std::size_t kShortestChunkedEnd = 5;

bool IsNumber(BeastView text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether an Accept-Encoding ("br;q=1.0, gzip;q=0.8") wants it.
bool NamesGzip(std::string_view codings) {
  while (!codings.empty()) {
    const std::size_t end = std::min(codings.find(','), codings.size());
    std::string_view coding = codings.substr(0, end);
    codings.remove_prefix(std::min(end + 1, codings.size()));
    coding.remove_prefix(std::min(coding.find_first_not_of(" \t"), coding.size()));
    const std::string_view name = coding.substr(0, coding.find_first_of("; \t"));
    if (!beast::iequals(BeastView(name.data(), name.size()), "gzip")) continue;
    const std::size_t quality = coding.find("q=");
    return quality == std::string_view::npos ||
           coding.find_first_of("123456789", quality) != std::string_view::npos;
  }
  return false;
}

Refusal RefusalFor(const beast::error_code& code) {
  using beast::http::error;
  if (code == error::body_limit) {
    return {413, "body too large"};
  }
  if (code == error::header_limit) {
    return {431, "header too large"};
  }
  if (code == error::bad_content_length) {
    return {400, "bad content-length"};
  }
  if (code == error::bad_transfer_encoding) {
    return {400, "bad transfer-encoding"};
  }
  if (code == error::bad_chunk || code == error::bad_chunk_extension) {
    return {400, "bad chunk"};
  }
  if (code == error::bad_version) {
    return {400, "bad http version"};
  }
  if (code == error::bad_method || code == error::bad_target) {
    return {400, "bad request line"};
  }
  return {400, "malformed request"};
}

// "http://host/path" (what a client of a proxy sends) without "http://host".
std::string_view WithoutOrigin(std::string_view target) {
  if (target.empty() || target.front() == '/') {
    return target;
  }
  const std::size_t scheme_end = target.find("://");
  if (scheme_end == std::string_view::npos) {
    return target;
  }
  const std::size_t path = target.find_first_of("/?#", scheme_end + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

std::string CollapseSlashes(std::string_view path) {
  std::string result;
  result.reserve(path.size() + 1);
  for (const char c : path) {
    if (c != '/' || result.empty() || result.back() != '/') {
      result += c;
    }
  }
  if (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  if (result.empty()) {
    result = "/";
  }
  return result;
}

}  // namespace

class RequestParser::BeastParser final : public beast::http::basic_parser<true> {
 public:
  explicit BeastParser(std::uint64_t max_body_bytes) {
    // The caller bounds the header by the size of the block.
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(max_body_bytes);
    max_body_bytes_ = max_body_bytes;
  }

  RequestHead& head() { return head_; }
  void set_body(std::string* body) { body_ = body; }

  // Refuses what Beast accepts in a complete header.
  [[nodiscard]] std::optional<Refusal> CheckHead() const {
    if (refusal_) {
      return refusal_;
    }
    if (has_transfer_encoding_ && (!head_.http_1_1 || has_content_length_)) {
      return Refusal{400, "bad transfer-encoding"};
    }
    if (head_.method == "POST" && IsOfOtherSite()) {
      return Refusal{403, "want no POST that a page of another site sends with a browser"};
    }
    return std::nullopt;
  }

 private:
  using error_code = beast::error_code;

  // Browsers alone send these fields. A proxy may change the Host that the page was asked of; the
  // browser's own word on it counts more.
  [[nodiscard]] bool IsOfOtherSite() const {
    if (beast::iequals(site_, "cross-site")) return true;
    if (!origin_ || beast::iequals(site_, "same-origin")) return false;
    const std::size_t scheme_end = origin_->find("://");
    return scheme_end == std::string::npos ||
           !beast::iequals(BeastView(*origin_).substr(scheme_end + 3), host_);
  }

  void on_request_impl(beast::http::verb, BeastView method, BeastView target, int version,
                       error_code&) override {
    head_.method.assign(method.data(), method.size());
    head_.target.assign(target.data(), target.size());
    head_.http_1_1 = version == 11;
  }

  void on_field_impl(field name, BeastView text, BeastView value, error_code&) override {
    if (!in_header_) {
      return;  // a trailer: not used
    }
    switch (name) {
      case field::content_length:
        OnContentLength(value);
        break;
      case field::transfer_encoding:
        // Beast takes "gzip" for no body and "gzip, chunked" for chunked.
        has_transfer_encoding_ = true;
        if (!beast::iequals(value, "chunked")) {
          Refuse(501, "only the chunked transfer-encoding is supported");
        }
        break;
      case field::content_encoding:
        if (!value.empty() && !beast::iequals(value, "identity")) {
          Refuse(415, "content-encoding is not supported");
        }
        break;
      case field::expect:
        if (beast::iequals(value, "100-continue")) {
          head_.expects_continue = true;
        } else {
          Refuse(417, "want expect: 100-continue");
        }
        break;
      case field::accept_encoding:
        head_.accepts_gzip = head_.accepts_gzip || NamesGzip({value.data(), value.size()});
        break;
      case field::if_none_match:
        head_.if_none_match.assign(value.data(), value.size());
        break;
      case field::host:
        host_.assign(value.data(), value.size());
        break;
      case field::origin:
        origin_.emplace(value.data(), value.size());
        break;
      default:
        if (beast::iequals(text, "sec-fetch-site")) site_.assign(value.data(), value.size());
        break;
    }
  }

  // Beast accepts "5, 5" and two equal fields; a proxy in front of the server may not.
  void OnContentLength(BeastView value) {
    if (has_content_length_ || !IsNumber(value)) {
      Refuse(400, "bad content-length");
    }
    has_content_length_ = true;
  }

  void on_header_impl(error_code&) override { in_header_ = false; }

  std::size_t on_chunk_body_impl(std::uint64_t, BeastView bytes, error_code&) override {
    const std::size_t wanted = body_->size() + bytes.size();
    if (wanted > body_->capacity()) {
      body_->reserve(std::min<std::size_t>(2 * wanted, max_body_bytes_));
    }
    body_->append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_response_impl(int, BeastView, int, error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(BeastView bytes, error_code&) override { return bytes.size(); }
  void on_chunk_header_impl(std::uint64_t, BeastView, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  // The first reason stays; 400 (which may be smuggling) takes precedence over the others.
  void Refuse(int status, std::string_view reason) {
    if (!refusal_ || status == 400) {
      refusal_ = Refusal{status, reason};
    }
  }

  std::uint64_t max_body_bytes_ = 0;
  RequestHead head_;
  std::string* body_ = nullptr;
  std::optional<Refusal> refusal_;
  std::string host_, site_;  // Host, Sec-Fetch-Site
  std::optional<std::string> origin_;
  bool in_header_ = true;
  bool has_content_length_ = false;
  bool has_transfer_encoding_ = false;
};

RequestParser::RequestParser(std::uint64_t max_body_bytes) : max_body_bytes_(max_body_bytes) {
  Reset();
}

RequestParser::~RequestParser() = default;

void RequestParser::Reset() { parser_ = std::make_unique<BeastParser>(max_body_bytes_); }

std::optional<Refusal> RequestParser::CheckBeginning(std::string_view bytes) {
  BeastParser parser(0);
  beast::error_code code;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), code);
  if (!code || code == beast::http::error::need_more || code == beast::http::error::body_limit) {
    return std::nullopt;
  }
  return RefusalFor(code);
}

std::optional<Refusal> RequestParser::ParseHead(std::string_view block) {
  beast::error_code code;
  const std::size_t consumed = parser_->put(boost::asio::buffer(block.data(), block.size()), code);
  if (code) {
    return RefusalFor(code);
  }
  if (consumed != block.size() || !parser_->is_header_done()) {
    return Refusal{400, "malformed request"};
  }
  RequestHead& head = parser_->head();
  head.keep_alive = parser_->keep_alive();
  head.chunked = parser_->chunked();
  if (!head.chunked) {
    head.content_length = parser_->content_length().value_or(0);
  }
  return parser_->CheckHead();
}

const RequestHead& RequestParser::head() const { return parser_->head(); }

RequestParser::ChunkProgress RequestParser::ParseChunks(std::string_view bytes, std::string& body) {
  parser_->set_body(&body);
  ChunkProgress progress;
  while (bytes.size() - progress.consumed >= kShortestChunkedEnd) {
    beast::error_code code;
    progress.consumed += parser_->put(
        boost::asio::buffer(bytes.data() + progress.consumed, bytes.size() - progress.consumed),
        code);
    if (code == beast::http::error::need_more) {
      break;
    }
    if (code) {
      progress.refusal = RefusalFor(code);
      break;
    }
    if (parser_->is_done()) {
      progress.done = true;
      break;
    }
  }
  return progress;
}

RequestTarget ParseRequestTarget(std::string_view target) {
  target = WithoutOrigin(target);
  target = target.substr(0, target.find('#'));
  RequestTarget result;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) {
    result.query = target.substr(question + 1);
    target = target.substr(0, question);
  }
  result.path = CollapseSlashes(target);
  return result;
}

}  // namespace berth::http
