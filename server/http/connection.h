// SPDX-License-Identifier: Apache-2.0
//
// Connection: one client, from accept to close: header, body, answer, the next header. It lives on
// the event loop of its shard, every function is called there, and each of its pending operations
// keeps it alive. A state has one deadline, and no state has none.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"
#include "server/http/http_message.h"
#include "server/http/request_parser.h"
#include "server/http/transport.h"

namespace berth::http {

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
