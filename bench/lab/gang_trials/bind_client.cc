// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/bind_client.h"

#include <thread>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace berth::gang_trials {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

class BindClient::Impl {
 public:
  Impl(const std::string& address, Duration timeout)
      : host_(address), timeout_(timeout), work_(asio::make_work_guard(loop_)) {
    const std::size_t colon = address.rfind(':');
    server_ =
        asio::ip::tcp::endpoint(asio::ip::make_address(address.substr(0, colon)),
                                static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    thread_ = std::thread([this] { loop_.run(); });
  }

  ~Impl() {
    loop_.stop();
    thread_.join();
  }

  void Post(const std::string& path, std::string body, Done done) {
    auto call = std::make_shared<Call>();
    call->request = {beast_http::verb::post, path, 11, std::move(body)};
    call->request.set(beast_http::field::host, host_);
    call->request.set(beast_http::field::content_type, "application/json");
    call->request.prepare_payload();
    call->done = std::move(done);
    asio::post(loop_, [this, call] { Begin(call); });
  }

 private:
  struct Call {
    std::unique_ptr<beast::tcp_stream> stream;
    beast::flat_buffer buffer;
    beast_http::request<beast_http::string_body> request;
    beast_http::response<beast_http::string_body> response;
    Done done;
  };
  using CallPtr = std::shared_ptr<Call>;

  void Begin(const CallPtr& call) {
    if (!idle_.empty()) {
      call->stream = std::move(idle_.back());
      idle_.pop_back();
      call->stream->expires_after(timeout_);
      return Write(call);
    }
    call->stream = std::make_unique<beast::tcp_stream>(loop_);
    call->stream->expires_after(timeout_);
    call->stream->async_connect(server_, [this, call](const error_code& code) {
      if (code) return Fail(call);
      call->stream->socket().set_option(asio::ip::tcp::no_delay(true));
      Write(call);
    });
  }

  void Write(const CallPtr& call) {
    beast_http::async_write(*call->stream, call->request,
                            [this, call](const error_code& code, std::size_t) {
                              if (code) return Fail(call);
                              Read(call);
                            });
  }

  void Read(const CallPtr& call) {
    beast_http::async_read(*call->stream, call->buffer, call->response,
                           [this, call](const error_code& code, std::size_t) {
                             if (code) return Fail(call);
                             call->stream->expires_never();
                             if (call->response.keep_alive()) {
                               idle_.push_back(std::move(call->stream));
                             }
                             call->done(call->response.result_int() == 200, call->response.body());
                           });
  }

  static void Fail(const CallPtr& call) { call->done(false, ""); }

  const std::string host_;
  const Duration timeout_;
  asio::ip::tcp::endpoint server_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::unique_ptr<beast::tcp_stream>> idle_;
  std::thread thread_;
};

BindClient::BindClient(const std::string& address, Duration timeout)
    : impl_(std::make_shared<Impl>(address, timeout)) {}
BindClient::~BindClient() = default;

void BindClient::Post(const std::string& path, std::string body, Done done) {
  impl_->Post(path, std::move(body), std::move(done));
}

}  // namespace berth::gang_trials
