// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <exception>
#include <new>

#include <boost/asio/post.hpp>

#include "server/http/shard.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// After a last answer the client's remaining bytes are read and dropped for a while: closing over
// unread bytes resets the connection, and the reset can overtake the answer.
constexpr Duration kLingerTime = std::chrono::seconds(2);
constexpr std::size_t kLingerBytes = std::size_t{256} << 20;

// An answer up to this size is never refused because of max_answer_bytes.
constexpr std::size_t kSmallAnswerBytes = std::size_t{64} << 10;

// How often a client that waits for an answer is looked for.
constexpr Duration kLookForClient = std::chrono::seconds(1);

// A read buffer above this size is freed between requests.
constexpr std::size_t kKeptBufferBytes = 4096;

Instant Now() { return std::chrono::steady_clock::now(); }

}  // namespace

Connection::Connection(Shard& shard, std::unique_ptr<Transport> transport, Instant accepted)
    : shard_(shard),
      options_(shard.service().options),
      counters_(shard.service().counters),
      transport_(std::move(transport)),
      timer_(shard.loop()),
      awaited_(accepted),
      parser_(options_.max_body_bytes) {}

void Connection::Serve() {
  try {
    shard_.Add(*this);
    ErrorCode ignored;
    transport_->socket().set_option(tcp::no_delay(true), ignored);
    Enter(State::kHandshake, options_.header_timeout);
    transport_->Handshake(Then(&Connection::OnHandshake));
    if (state_ != State::kClosed) StartTimer();
  } catch (const std::exception&) {  // out of memory
    counters_.handler_exceptions.Increment();
    Close();
  }
}

void Connection::OnHandshake(const ErrorCode& code, std::size_t) {
  if (state_ == State::kClosed) {
    return;
  }
  if (code) {
    counters_.tls_handshake_failures.Increment();
    BeginLinger();  // a close with bytes unread would reset what tells the client why
    StopSending();
    return;
  }
  AwaitRequest();
}

void Connection::CloseIfIdle() {
  if (state_ == State::kIdle) {
    Close();
  }
}

void Connection::Close() {
  if (state_ == State::kClosed) {
    return;
  }
  state_ = State::kClosed;
  if (client_closed_ != nullptr) client_closed_->store(true);
  timer_.cancel();
  ErrorCode ignored;
  transport_->socket().close(ignored);
  CountRequest(0);
  CountAnswer(0);
  shard_.Remove(*this);
}

void Connection::OnException() {
  counters_.handler_exceptions.Increment();
  std::string().swap(body_);
  response_ = HttpResponse();
  const bool may_answer = state_ == State::kHeader || state_ == State::kBody;
  if (may_answer) {
    Refuse({503, "out of memory"});
  } else {
    Close();
  }
}

void Callback::Call(Connection& connection, Member member, const boost::system::error_code& code,
                    std::size_t count) {
  try {
    (connection.*member)(code, count);
    return;
  } catch (const std::exception&) {
  }
  try {
    connection.OnException();
  } catch (const std::exception&) {
    connection.Close();
  }
}

// --- deadlines ---------------------------------------------------------------------------------

void Connection::Enter(State state, Duration limit) {
  state_ = state;
  deadline_ = Now() + limit;
}

Duration Connection::TransferTime(Duration grace, std::size_t bytes) const {
  const std::chrono::duration<double> seconds(static_cast<double>(bytes) /
                                              static_cast<double>(options_.min_bytes_per_second));
  return grace + std::chrono::duration_cast<Duration>(seconds);
}

// The timer fires at least once per shortest limit and checks the deadline. So a new deadline
// never lies before the next check, and setting one costs a store instead of a system call.
void Connection::StartTimer() {
  Duration look = std::min(
      {options_.header_timeout, options_.idle_timeout, options_.body_grace, options_.write_grace});
  if (answers_later_) look = std::min(look, kLookForClient);
  timer_.expires_at(std::min(deadline_, Now() + look));
  timer_.async_wait([self = shared_from_this()](const ErrorCode& code) {
    if (code || self->state_ == State::kClosed) return;
    try {
      self->OnTimer();
    } catch (const std::exception&) {  // out of memory: nothing would end it any more
      self->counters_.handler_exceptions.Increment();
      self->Close();
    }
  });
}

void Connection::OnTimer() {
  if (Now() >= deadline_) {
    OnDeadline();
  } else if (state_ == State::kIdle) {
    ReleaseMemory(0);
  } else if (reply_lost_) {
    OnException();
  } else if (answers_later_) {
    LookForClient();
  }
  if (state_ != State::kClosed) {
    StartTimer();
  }
}

void Connection::OnDeadline() {
  if (state_ != State::kIdle && state_ != State::kLinger) {
    counters_.timeouts.Increment();
  }
  if (state_ != State::kHeader && state_ != State::kBody) {
    Close();
    return;
  }
  // The callback of the pending read answers 408.
  timed_out_ = true;
  Enter(state_, options_.write_grace);
  ErrorCode ignored;
  transport_->socket().cancel(ignored);
}

// --- answer ------------------------------------------------------------------------------------

void Connection::Answer() {
  state_ = State::kAnswering;
  body_.resize(received_);
  counters_.requests.Increment();
  response_ = CallHandler(parser_.head());
  if (response_.later) {
    AnswerLater(std::exchange(response_.later, nullptr));
  } else {
    SendAnswer();
  }
}

// The connection reads nothing meanwhile and lives on in the Reply. Thousands may wait at a time:
// they hold no memory to read into.
void Connection::AnswerLater(const std::function<void(Reply)>& later) {
  Enter(State::kAnswering, options_.later_limit);
  ShrinkIfEmpty(0);
  CountRequest(body_.capacity() + buffer_.capacity());
  if (client_closed_ == nullptr) client_closed_ = std::make_shared<std::atomic<bool>>(false);
  const auto send = [self = shared_from_this()](HttpResponse response) {
    try {
      asio::post(self->shard_.loop(), [self, response = std::move(response)]() mutable {
        self->OnReply(std::move(response));
      });
    } catch (const std::exception&) {  // out of memory
      self->reply_lost_ = true;
    }
  };
  Reply reply(send, [closed = client_closed_] { return !closed->load(); });
  answers_later_ = true;
  StartTimer();  // to look more often
  try {
    later(std::move(reply));
  } catch (...) {
    counters_.handler_exceptions.Increment();  // the destroyed Reply answers 500
  }
}

void Connection::OnReply(HttpResponse response) {
  answers_later_ = false;
  if (state_ == State::kClosed) return;
  try {
    response_ = std::move(response);
    SendAnswer();
  } catch (const std::exception&) {
    OnException();
  }
}

// By the state of the TCP connection: what the client has sent meanwhile is not read, and may not
// be to be read before the answer.
void Connection::LookForClient() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(transport_->socket().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return;
  }
  if (info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_CLOSE)
    client_closed_->store(true);
}

void Connection::SendAnswer() {
  const RequestHead& head = parser_.head();
  AfterResponse after = AfterResponse::kClose;
  const bool ends =
      response_.ends_connection || shard_.service().draining.load(std::memory_order_relaxed);
  if (head.keep_alive && !ends) {
    after = head.http_1_1 ? AfterResponse::kKeepAlive : AfterResponse::kKeepAliveHttp10;
  }
  Send(after, head.method == "HEAD" ? Part::kHeaderOnly : Part::kHeaderAndBody);
}

HttpResponse Connection::CallHandler(const RequestHead& head) {
  const RequestTarget target = ParseRequestTarget(head.target);
  HttpRequest request{
      head.method, target.path,       target.query,      PaddedText(std::move(body_)),
      began_,      head.accepts_gzip, head.if_none_match};
  HttpResponse response;
  // The only catch-all: an exception of a handler ends its request, not the process.
  try {
    response = shard_.service().handler(request);
  } catch (const std::bad_alloc&) {  // may succeed later, when less is asked at the same time
    counters_.handler_exceptions.Increment();
    response = ErrorResponse(503, "out of memory");
  } catch (...) {
    counters_.handler_exceptions.Increment();
    response = ErrorResponse(500, "internal error");
  }
  body_ = std::move(request.body).Release();
  return response;
}

// Answers a request that no handler saw, and closes the connection, since it is no longer certain
// where the next request begins.
void Connection::Refuse(const Refusal& refusal) {
  timed_out_ = false;
  counters_.refused_requests.Increment();
  std::string().swap(body_);  // the received part is not kept while the client reads the answer
  CountRequest(buffer_.capacity());
  response_ = ErrorResponse(refusal.status, refusal.reason);
  if (refusal.status == 413) {
    response_.content_type.clear();
    response_.body.clear();  // many clients look for an answer only after all of their body is sent
  }
  Send(AfterResponse::kClose, Part::kHeaderAndBody);
}

// Answers of all connections together stay within max_answer_bytes: a large one is counted only if
// it fits, so that two that come at once can neither overrun the limit nor refuse each other.
bool Connection::CountAnswer(std::size_t bytes) {
  std::atomic<std::size_t>& total = shard_.service().answer_bytes;
  std::size_t before = total.load(std::memory_order_relaxed);
  std::size_t after = 0;
  do {
    after = before - answer_bytes_ + bytes;
    if (bytes > kSmallAnswerBytes && after > options_.max_answer_bytes) return false;
  } while (!total.compare_exchange_weak(before, after, std::memory_order_relaxed));
  answer_bytes_ = bytes;
  return true;
}

void Connection::Send(AfterResponse after, Part part) {
  if (!CountAnswer(response_.body.size())) {  // a shared body is its owner's to count
    counters_.refused_requests.Increment();
    response_ = ErrorResponse(503, "too many answers that are not read");
    CountAnswer(0);
  }
  const auto status_class = static_cast<std::size_t>(response_.status / 100);
  if (status_class < counters_.responses_by_class.size()) {
    counters_.responses_by_class[status_class].Increment();
  }
  FormatResponseHeader(response_, after, response_header_);
  close_after_ = after == AfterResponse::kClose;
  to_write_ = {asio::buffer(response_header_), part == Part::kHeaderAndBody
                                                   ? asio::buffer(BodyOf(response_))
                                                   : asio::const_buffer()};
  Enter(State::kAnswering, TransferTime(options_.write_grace, asio::buffer_size(to_write_)));
  after_write_ = &Connection::OnAnswered;
  Write();
}

// Header and body go out with one system call if the socket takes them.
void Connection::Write() { transport_->WriteSome(to_write_, Then(&Connection::OnWritten)); }

void Connection::OnWritten(const ErrorCode& code, std::size_t count) {
  if (state_ == State::kClosed) {
    return;
  }
  if (code) {
    Close();
    return;
  }
  const std::size_t of_first = std::min(count, to_write_[0].size());
  to_write_[0] += of_first;
  to_write_[1] += count - of_first;
  if (asio::buffer_size(to_write_) > 0) {
    Write();
  } else {
    (this->*after_write_)();
  }
}

void Connection::OnAnswered() {
  ReleaseMemory(kKeptBodyBytes);
  if (close_after_) {
    EndSending();
  } else {
    awaited_ = Now();
    AwaitRequest();
  }
}

// Frees the memory of the last request and answer where it is larger than `keep`.
void Connection::ReleaseMemory(std::size_t keep) {
  const std::size_t all = shard_.service().request_bytes.load(std::memory_order_relaxed);
  if (body_.capacity() > keep + PaddedText::kPadding || all > options_.max_request_bytes / 4) {
    std::string().swap(body_);
  }
  std::string().swap(response_.body);
  CountAnswer(0);
  response_.shared_body.reset();
  if (state_ != State::kIdle) {  // the pending read of an idle connection writes to the buffer
    ShrinkIfEmpty(kKeptBufferBytes);
  }
  CountRequest(body_.capacity() + buffer_.capacity());
}

void Connection::ShrinkIfEmpty(std::size_t keep) {
  if (buffer_.size() == 0 && buffer_.capacity() > keep) buffer_.shrink_to_fit();
}

// --- end ---------------------------------------------------------------------------------------

void Connection::EndSending() {
  BeginLinger();
  transport_->SayGoodbye(Then(&Connection::OnGoodbye));
}

void Connection::BeginLinger() {
  Enter(State::kLinger, kLingerTime);
  StartTimer();  // this limit may be shorter than those of the options
}

// TLS calls back with the client's close_notify or at its first other byte: the connection is over.
void Connection::OnGoodbye(const ErrorCode&, std::size_t) {
  if (state_ != State::kClosed) StopSending();
}

void Connection::StopSending() {
  ErrorCode ignored;
  transport_->socket().shutdown(tcp::socket::shutdown_send, ignored);
  DropInput();
}

void Connection::DropInput() {
  transport_->socket().async_read_some(asio::buffer(shard_.scratch()),
                                       Then(&Connection::OnDropped));
}

void Connection::OnDropped(const ErrorCode& code, std::size_t count) {
  if (state_ == State::kClosed) {
    return;
  }
  dropped_ += count;
  if (code || dropped_ > kLingerBytes) {
    Close();
  } else {
    DropInput();
  }
}

}  // namespace berth::http
