// SPDX-License-Identifier: Apache-2.0
//
// RequestParser: the header block and the chunks of one request, parsed by Boost.Beast and judged
// more strictly where its leniency lets two readers see two different requests (RFC 9112
// section 6.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace berth::http {

// Why a request is answered before any handler saw it; the connection ends with the answer.
struct Refusal {
  int status = 400;
  std::string_view reason;  // a literal
};

struct RequestHead {
  std::string method;
  std::string target;
  bool http_1_1 = false;
  bool keep_alive = false;
  bool expects_continue = false;
  bool chunked = false;
  bool accepts_gzip = false;
  std::string if_none_match;
  std::uint64_t content_length = 0;  // 0 as well if there is no body, or a chunked one
};

// Not thread-safe. Parse one head, then if it says chunked its chunks; Reset; the next request.
class RequestParser {
 public:
  // Requests with more body bytes than this are refused with 413.
  explicit RequestParser(std::uint64_t max_body_bytes);
  ~RequestParser();

  void Reset();

  // What is wrong with the beginning of a request whose header is not complete yet, if that is
  // already certain. Changes nothing.
  static std::optional<Refusal> CheckBeginning(std::string_view bytes);

  // Parses a complete header block, which ends with the only empty line in it. Call once.
  std::optional<Refusal> ParseHead(std::string_view block);
  [[nodiscard]] const RequestHead& head() const;

  // Takes from `bytes` as many chunks or parts of chunks as there are, and appends what they carry
  // to `body`. consumed < bytes.size() means: a chunk header is cut, call again with the rest and
  // more.
  struct ChunkProgress {
    std::size_t consumed = 0;
    bool done = false;
    std::optional<Refusal> refusal;
  };
  ChunkProgress ParseChunks(std::string_view bytes, std::string& body);

 private:
  class BeastParser;

  std::uint64_t max_body_bytes_;
  std::unique_ptr<BeastParser> parser_;
};

// The request target of an HTTP request line, taken apart.

struct RequestTarget {
  std::string path;
  std::string query;  // without the '?'
};

// Cuts the scheme and authority of an absolute target, the fragment and the query; collapses
// repeated slashes and drops a trailing one. kube-scheduler's verb "/filter" arrives as "//filter",
// and a redirect would turn its POST into a GET, so all spellings must mean the same path:
//   "//filter/?timeout=5s"  ->  {"/filter", "timeout=5s"}
//   "http://berth:8080/filter" -> {"/filter", ""}
// Nothing is percent-decoded and dot segments are left alone: they match no route.
RequestTarget ParseRequestTarget(std::string_view target);

}  // namespace berth::http
