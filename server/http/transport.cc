// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport.h"

#include <boost/asio/ssl/stream.hpp>

namespace berth::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket) : socket_(std::move(socket)) {}

  void Handshake(Callback callback) override { callback(error_code()); }
  void SayGoodbye(Callback callback) override { callback(error_code()); }

  void ReadSome(asio::mutable_buffer buffer, Callback callback) override {
    socket_.async_read_some(buffer, std::move(callback));
  }

  void WriteSome(const WriteBuffers& buffers, Callback callback) override {
    socket_.async_write_some(buffers, std::move(callback));
  }

  tcp::socket& socket() override { return socket_; }

 private:
  tcp::socket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void Handshake(Callback callback) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(callback));
  }

  void SayGoodbye(Callback callback) override { stream_.async_shutdown(std::move(callback)); }

  void ReadSome(asio::mutable_buffer buffer, Callback callback) override {
    stream_.async_read_some(buffer, std::move(callback));
  }

  void WriteSome(const WriteBuffers& buffers, Callback callback) override {
    stream_.async_write_some(buffers, std::move(callback));
  }

  tcp::socket& socket() override { return stream_.next_layer(); }

 private:
  std::shared_ptr<asio::ssl::context> context_;
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> MakePlainTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> MakeTlsTransport(tcp::socket socket,
                                            std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsTransport>(std::move(socket), std::move(context));
}

}  // namespace berth::http
