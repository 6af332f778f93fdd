// SPDX-License-Identifier: Apache-2.0
//
// Connection: one client, from accept to close: header, body, answer, the next header. It lives on
// the event loop of its shard, every function is called there, and each of its pending operations
// keeps it alive. A state has one deadline, and no state has none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>

#include "base/clock.h"
#include "base/padded_text.h"
#include "server/http/http_message.h"
#include "server/http/transport.h"

namespace berth::http {

// RequestParser: the header block and the chunks of one request, parsed by Boost.Beast and judged
// more strictly where its leniency lets two readers see two different requests (RFC 9112
// section 6.3).

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

// How the memory of a request body grows while its bytes arrive straight from the socket.

// A connection frees the memory of a body above this size once its request is answered.
inline constexpr std::size_t kKeptBodyBytes = std::size_t{1} << 20;

// Growing a string fills it with zeros; in steps that the cache holds this costs little.
inline constexpr std::size_t kBodyStepBytes = std::size_t{256} << 10;
inline constexpr std::size_t kFirstBodyBytes = std::size_t{16} << 10;

// Makes body.size() (the part that may be written) larger than `received`, up to `total`, with room
// for the padding of a PaddedText behind it. Requires: received < total.
//
// Content-Length is not trusted: memory is touched only one step ahead of the bytes that have
// arrived, and address space stays below four times these bytes (or 64 KiB). So a large body is
// still copied only a few times. A size left over from the last request is used as it is, because
// most requests of a connection have the same size.
inline void GrowBody(std::string& body, std::size_t received, std::size_t total) {
  if (body.size() > received) {
    body.resize(std::min(body.size(), total));
    return;
  }
  const std::size_t step = std::clamp(received, kFirstBodyBytes, kBodyStepBytes);
  const std::size_t size = std::min(total, received + step);
  if (body.capacity() < size + PaddedText::kPadding) {
    body.resize(received);
    body.reserve(std::min(total, std::max(4 * received, 4 * kFirstBodyBytes)) +
                 PaddedText::kPadding);
  }
  body.resize(size);
}

class Shard;
struct HttpServerOptions;
struct ServerCounters;

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  // A client that was accepted onto the shard's loop at that time. The shard outlives the
  // connection. Owned by a shared_ptr: call Serve next, which registers it with the shard.
  Connection(Shard& shard, std::unique_ptr<Transport> transport, Instant accepted);

  void Serve();

  // Closes it if it waits for a request and no byte of it has arrived.
  void CloseIfIdle();

  // Closes it, whatever it is doing. A second call does nothing.
  void Close();

  // An operation of the connection threw: answers 503 if it can, and closes.
  void OnException();

 private:
  enum class State {
    kHandshake,
    kIdle,       // no byte of the next request has arrived
    kHeader,     // some bytes have
    kBody,       // the header is complete
    kAnswering,  // the handler runs, or an answer is on its way
    kLinger,     // the last answer is sent
    kClosed,
  };
  using ErrorCode = boost::system::error_code;
  using Member = void (Connection::*)(const ErrorCode&, std::size_t);

  Callback Then(Member member) { return Callback{shared_from_this(), member}; }

  void Enter(State state, Duration limit);
  [[nodiscard]] Duration TransferTime(Duration grace, std::size_t bytes) const;
  void StartTimer();
  void OnTimer();
  void OnDeadline();

  void OnHandshake(const ErrorCode& code, std::size_t unused);

  // Receiving: connection_request.cc.
  void AwaitRequest();
  void ReadHeader();
  void OnHeaderRead(const ErrorCode& code, std::size_t count);
  [[nodiscard]] Instant ArrivalOfRead();
  bool ReadFailed(const ErrorCode& code);
  // What was received and not yet consumed. Valid until the buffer grows.
  [[nodiscard]] std::string_view Received() const {
    return {static_cast<const char*>(buffer_.cdata().data()), buffer_.size()};
  }
  void ShrinkIfEmpty(std::size_t keep);  // gives memory of more than `keep` bytes back
  void DropEmptyLines();
  void OnHeaderBytes();
  std::optional<Refusal> CheckBeginning(std::string_view bytes);
  void OnHeader(std::size_t header_bytes);

  void SendContinue();
  void BeginBody();
  void TakeBufferedBody();
  void ReadBody();
  void OnBodyRead(const ErrorCode& code, std::size_t count);
  void OnChunkedBytes();
  [[nodiscard]] bool MayHoldRequest();
  void CountRequest(std::size_t bytes);
  bool CountAnswer(std::size_t bytes);  // false, and nothing counted: max_answer_bytes exceeded
  void OnChunksRead(const ErrorCode& code, std::size_t count);

  // Answering: connection.cc.
  void Answer();
  void AnswerLater(const std::function<void(Reply)>& later);
  void OnReply(HttpResponse response);
  void LookForClient();  // whether it has closed its side, while the answer is made
  void SendAnswer();
  HttpResponse CallHandler(const RequestHead& head);
  void Refuse(const Refusal& refusal);
  enum class Part { kHeaderOnly, kHeaderAndBody };
  void Send(AfterResponse after, Part part);
  void Write();
  void OnWritten(const ErrorCode& code, std::size_t count);
  void OnAnswered();
  void ReleaseMemory(std::size_t keep);

  void EndSending();
  void BeginLinger();
  void StopSending();
  void OnGoodbye(const ErrorCode& code, std::size_t unused);
  void DropInput();
  void OnDropped(const ErrorCode& code, std::size_t count);

  Shard& shard_;
  const HttpServerOptions& options_;
  ServerCounters& counters_;
  std::unique_ptr<Transport> transport_;
  boost::asio::steady_timer timer_;
  State state_ = State::kIdle;
  Instant deadline_{};
  Instant awaited_;         // from when on the next request may arrive
  Instant began_{};         // when its first byte arrived
  bool timed_out_ = false;  // the pending read is being cancelled and shall answer 408

  RequestParser parser_;
  boost::beast::flat_buffer buffer_;
  std::size_t searched_ = 0;  // no end of the header begins before this offset of the buffer
  bool first_line_checked_ = false;

  std::string body_;               // while it is read, its size is the part that may be written
  std::size_t received_ = 0;       // bytes of the body that have arrived
  std::size_t request_bytes_ = 0;  // of it and the buffer, in the server's request_bytes
  std::size_t answer_bytes_ = 0;   // of the answer, in the server's answer_bytes
  Instant body_began_{};

  HttpResponse response_;
  bool answers_later_ = false;
  std::atomic<bool> reply_lost_ = false;  // there was no memory to hand it over: the timer closes
  // Read from any thread; made for the first answer that comes later.
  std::shared_ptr<std::atomic<bool>> client_closed_;
  std::string response_header_;
  WriteBuffers to_write_;
  void (Connection::*after_write_)() = nullptr;
  bool close_after_ = false;
  std::size_t dropped_ = 0;
};

}  // namespace berth::http
