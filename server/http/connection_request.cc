// SPDX-License-Identifier: Apache-2.0
//
// The first half of a Connection: receiving a request.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "server/http/connection.h"
#include "server/http/shard.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;

// Enough for the header of a request that a program sends; body bytes behind it are moved.
constexpr std::size_t kFirstReadBytes = 4096;
constexpr std::size_t kChunkedReadBytes = std::size_t{64} << 10;

// A shorter wait in the socket is below the resolution of the kernel's clock.
constexpr std::chrono::milliseconds kLeastWait(10);

}  // namespace

// --- header ------------------------------------------------------------------------------------

void Connection::AwaitRequest() {
  parser_.Reset();
  searched_ = 0;
  first_line_checked_ = false;
  DropEmptyLines();
  if (buffer_.size() == 0) {
    Enter(State::kIdle, options_.idle_timeout);
    ReadHeader();
  } else {
    began_ = std::chrono::steady_clock::now();  // pipelined
    Enter(State::kHeader, options_.header_timeout);
    OnHeaderBytes();
  }
}

void Connection::ReadHeader() {
  const auto room = buffer_.prepare(
      std::min(std::max(kFirstReadBytes, buffer_.size()), options_.max_header_bytes));
  if (!MayHoldRequest() && buffer_.capacity() > kFirstReadBytes) {
    Refuse({503, "too many large requests"});
    return;
  }
  transport_->ReadSome(room, Then(&Connection::OnHeaderRead));
}

void Connection::OnHeaderRead(const ErrorCode& code, std::size_t count) {
  if (ReadFailed(code)) {
    return;
  }
  buffer_.commit(count);
  if (searched_ == 0) {
    DropEmptyLines();
  }
  if (buffer_.size() == 0) {
    ReadHeader();
    return;
  }
  if (state_ == State::kIdle) {
    began_ = ArrivalOfRead();
    Enter(State::kHeader, options_.header_timeout);
  }
  OnHeaderBytes();
}

// When the bytes that were just read arrived. The kernel reports how long ago the last byte came,
// by a clock that ticks every 1 to 10 ms.
Instant Connection::ArrivalOfRead() {
  const Instant now = std::chrono::steady_clock::now();
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(transport_->socket().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return now;
  }
  const std::chrono::milliseconds waited(info.tcpi_last_data_recv);
  return waited < kLeastWait ? now : std::max<Instant>(now - waited, awaited_);
}

// Handles the ways in which a read of a request can end without bytes.
bool Connection::ReadFailed(const ErrorCode& code) {
  if (state_ == State::kClosed) {
    return true;
  }
  if (timed_out_) {
    Refuse({408, "request not complete in time"});
    return true;
  }
  if (code) {
    Close();  // a client that leaves in the middle of a request gets no answer
    return true;
  }
  return false;
}

// Some clients send an extra line end after a body (RFC 9112 section 2.2).
void Connection::DropEmptyLines() {
  while (Received().starts_with("\r\n")) {
    buffer_.consume(2);
  }
}

void Connection::OnHeaderBytes() {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::string_view bytes = Received();
  const std::size_t end = bytes.find(kEnd, searched_);
  const bool complete = end != std::string_view::npos;
  const std::size_t header_bytes = complete ? end + kEnd.size() : bytes.size() + 1;
  if (header_bytes > options_.max_header_bytes) {
    Refuse({431, "header too large"});
  } else if (complete) {
    OnHeader(header_bytes);
  } else if (const std::optional<Refusal> refusal = CheckBeginning(bytes)) {
    Refuse(*refusal);
  } else {
    searched_ = bytes.size() - std::min(bytes.size(), kEnd.size() - 1);
    ReadHeader();
  }
}

// Refuses garbage before its deadline: checks the first bytes, and again the whole first line.
std::optional<Refusal> Connection::CheckBeginning(std::string_view bytes) {
  const bool has_line = bytes.find('\n') != std::string_view::npos;
  if (first_line_checked_ || (searched_ > 0 && !has_line) || bytes == "\r") {
    return std::nullopt;
  }
  first_line_checked_ = has_line;
  return RequestParser::CheckBeginning(bytes);
}

void Connection::OnHeader(std::size_t header_bytes) {
  const std::optional<Refusal> refusal = parser_.ParseHead(Received().substr(0, header_bytes));
  buffer_.consume(header_bytes);
  if (refusal) {
    Refuse(*refusal);
    return;
  }
  received_ = 0;
  const RequestHead& head = parser_.head();
  if (head.chunked) {
    body_.clear();
  }
  const bool is_complete = !head.chunked && buffer_.size() >= head.content_length;
  if (head.expects_continue && head.http_1_1 && !is_complete) {
    SendContinue();
  } else {
    BeginBody();
  }
}

void Connection::SendContinue() {
  Enter(State::kAnswering, options_.write_grace);
  to_write_ = {asio::buffer(kContinue), asio::const_buffer()};
  after_write_ = &Connection::BeginBody;
  Write();
}

// --- body --------------------------------------------------------------------------------------

void Connection::BeginBody() {
  const RequestHead& head = parser_.head();
  body_began_ = std::chrono::steady_clock::now();
  Enter(State::kBody, TransferTime(options_.body_grace, head.content_length));
  if (head.chunked) {
    OnChunkedBytes();
  } else {
    TakeBufferedBody();
    ReadBody();
  }
}

void Connection::TakeBufferedBody() {
  const std::size_t total = parser_.head().content_length;
  while (received_ < total && buffer_.size() > 0) {
    GrowBody(body_, received_, total);
    const std::size_t count = std::min(body_.size() - received_, buffer_.size());
    std::copy_n(Received().data(), count, body_.data() + received_);
    buffer_.consume(count);
    received_ += count;
  }
}

// The rest of the body is read from the socket straight into the memory that the handler sees.
void Connection::ReadBody() {
  const std::size_t total = parser_.head().content_length;
  if (received_ == total) {
    Answer();
    return;
  }
  GrowBody(body_, received_, total);
  if (!MayHoldRequest()) {
    Refuse({503, "too many large requests"});
    return;
  }
  transport_->ReadSome(asio::buffer(body_.data() + received_, body_.size() - received_),
                       Then(&Connection::OnBodyRead));
}

void Connection::OnBodyRead(const ErrorCode& code, std::size_t count) {
  if (!ReadFailed(code)) {
    received_ += count;
    ReadBody();
  }
}

void Connection::OnChunkedBytes() {
  const RequestParser::ChunkProgress progress = parser_.ParseChunks(Received(), body_);
  buffer_.consume(progress.consumed);
  received_ = body_.size();
  if (progress.refusal) {
    Refuse(*progress.refusal);
  } else if (progress.done) {
    Answer();
  } else if (!MayHoldRequest()) {
    Refuse({503, "too many large requests"});
  } else if (buffer_.size() >= options_.max_header_bytes) {
    Refuse({431, "chunk header or trailer too large"});
  } else {
    deadline_ = body_began_ + TransferTime(options_.body_grace, received_);
    transport_->ReadSome(buffer_.prepare(kChunkedReadBytes), Then(&Connection::OnChunksRead));
  }
}

void Connection::OnChunksRead(const ErrorCode& code, std::size_t count) {
  if (!ReadFailed(code)) {
    buffer_.commit(count);
    OnChunkedBytes();
  }
}

// Counts the bytes of the request that this connection holds against max_request_bytes. Capacity
// that was reserved for a large body counts only where it is filled.
bool Connection::MayHoldRequest() {
  CountRequest(std::max(body_.size(), std::min(body_.capacity(), kKeptBodyBytes)) +
               buffer_.capacity());
  const std::size_t all = shard_.service().request_bytes.load(std::memory_order_relaxed);
  const bool is_large = request_bytes_ > kKeptBodyBytes + kChunkedReadBytes;
  return all <= options_.max_request_bytes / (is_large ? 2 : 1);
}

void Connection::CountRequest(std::size_t bytes) {
  if (bytes != request_bytes_) {
    // Unsigned arithmetic: a difference below zero wraps around and back.
    shard_.service().request_bytes.fetch_add(bytes - request_bytes_, std::memory_order_relaxed);
    request_bytes_ = bytes;
  }
}

}  // namespace berth::http
