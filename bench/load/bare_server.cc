// SPDX-License-Identifier: Apache-2.0
#include "bench/load/bare_server.h"

#include <atomic>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace berth::load {

namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using tcp = boost::asio::ip::tcp;

class BareServer::Impl {
 public:
  Impl() : acceptor_(context_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
    Accept();
    thread_ = std::thread([this] { context_.run(); });
  }

  ~Impl() {
    context_.stop();
    thread_.join();
  }

  [[nodiscard]] unsigned short port() const { return acceptor_.local_endpoint().port(); }
  void SetAnswer(const std::string* answer) { answer_.store(answer); }

 private:
  void Accept() {
    acceptor_.async_accept([this](boost::system::error_code code, tcp::socket socket) {
      if (code) return;
      socket.set_option(tcp::no_delay(true));
      stream_.emplace(std::move(socket));
      Read();
    });
  }

  void Read() {
    parser_.emplace();
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    beast_http::async_read(*stream_, buffer_, *parser_,
                           [this](boost::system::error_code code, std::size_t) {
                             if (code) return Accept();
                             Write();
                           });
  }

  void Write() {
    response_ = beast_http::response<beast_http::string_body>(beast_http::status::ok, 11);
    response_.set(beast_http::field::content_type, "application/json");
    response_.body() = *answer_.load();
    response_.prepare_payload();
    beast_http::async_write(*stream_, response_,
                            [this](boost::system::error_code code, std::size_t) {
                              if (code) return Accept();
                              Read();
                            });
  }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_;
  std::optional<beast::tcp_stream> stream_;
  beast::flat_buffer buffer_;
  std::optional<beast_http::request_parser<beast_http::string_body>> parser_;
  beast_http::response<beast_http::string_body> response_;
  std::atomic<const std::string*> answer_{nullptr};
  std::thread thread_;
};

BareServer::BareServer()
    : impl_(std::make_unique<Impl>()), address_("127.0.0.1:" + std::to_string(impl_->port())) {}

BareServer::~BareServer() = default;

void BareServer::SetAnswer(const std::string* answer) { impl_->SetAnswer(answer); }

}  // namespace berth::load
