// SPDX-License-Identifier: Apache-2.0
#include "test/support/stream_server.h"

#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace berth::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

void SetUp(asio::ssl::context& context, const StreamServerOptions& options) {
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_use_certificate(native, options.identity->certificate.get());
  SSL_CTX_use_PrivateKey(native, options.identity->key.get());
  if (options.client_ca == nullptr) return;
  X509_STORE_add_cert(SSL_CTX_get_cert_store(native), options.client_ca->certificate.get());
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
}

std::string SubjectOf(SSL* ssl) {
  const std::unique_ptr<X509, OpensslFree> shown(SSL_get1_peer_certificate(ssl));
  std::string name(256, '\0');
  if (shown == nullptr) return "";
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName,
                                               name.data(), static_cast<int>(name.size()));
  name.resize(static_cast<std::size_t>(std::max(length, 0)));
  return name;
}

std::string Text(boost::beast::string_view view) { return {view.data(), view.size()}; }

template <class Stream>
class Reply final : public StreamReply {
 public:
  Reply(Stream& stream, tcp::socket& socket) : stream_(stream), socket_(socket) {}

  bool Whole(int status, std::string_view body, std::string_view header) override {
    return Write("HTTP/1.1 " + std::to_string(status) +
                 " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                 std::string(header) + "\r\n" + std::string(body));
  }
  bool BeginChunks(int status) override {
    return Write("HTTP/1.1 " + std::to_string(status) + " X\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  bool Chunk(std::string_view bytes) override {
    char size[32];
    const int length = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    chunk_.assign(size, static_cast<std::size_t>(length)).append(bytes).append("\r\n");
    return Write(chunk_);
  }
  bool EndChunks() override { return Write("0\r\n\r\n"); }
  void Cut() override { good_ = false; }
  void Hang() override {
    char byte = 0;
    error_code code;
    while (!code) socket_.read_some(asio::buffer(&byte, 1), code);
    good_ = false;
  }

  [[nodiscard]] bool good() const { return good_; }

 private:
  bool Write(const std::string& bytes) {
    error_code code;
    if (good_) asio::write(stream_, asio::buffer(bytes), code);
    if (code) good_ = false;
    return good_;
  }

  Stream& stream_;
  tcp::socket& socket_;
  std::string chunk_;
  bool good_ = true;
};

template <class Stream>
void Serve(Stream& stream, tcp::socket& socket, StreamRequest request,
           const StreamServer::Handler& handler) {
  boost::beast::flat_buffer buffer;
  Reply<Stream> reply(stream, socket);
  while (reply.good()) {
    http::request<http::string_body> message;
    error_code code;
    http::read(stream, buffer, message, code);
    if (code) return;
    request.method = Text(message.method_string());
    request.target = Text(message.target());
    request.body = message.body();
    request.user_agent = Text(message[http::field::user_agent]);
    request.content_type = Text(message[http::field::content_type]);
    request.host = Text(message[http::field::host]);
    const std::string authorization = Text(message[http::field::authorization]);
    request.token = authorization.rfind("Bearer ", 0) == 0 ? authorization.substr(7) : "";
    handler(request, reply);
  }
}

}  // namespace

class StreamServer::Impl {
 public:
  Impl(const StreamServerOptions& options, Handler handler)
      : handler_(std::move(handler)),
        tls_(options.identity != nullptr),
        acceptor_(io_,
                  tcp::endpoint(options.ipv6 ? asio::ip::address(asio::ip::address_v6::loopback())
                                             : asio::ip::address(asio::ip::address_v4::loopback()),
                                0)) {
    if (tls_) SetUp(context_, options);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { Accept(); });
  }

  ~Impl() {
    stopping_ = true;
    error_code ignored;
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // wakes the blocking accept
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      for (Connection& one : connections_) one.socket.shutdown(tcp::socket::shutdown_both, ignored);
    }
    for (Connection& one : connections_) one.thread.join();
  }

  std::uint16_t port_ = 0;
  std::atomic<int> open_ = 0, accepted_ = 0;

 private:
  struct Connection {
    explicit Connection(tcp::socket accepted) : socket(std::move(accepted)) {}
    tcp::socket socket;
    std::thread thread;
  };

  void Accept() {
    while (true) {
      error_code code;
      tcp::socket socket = acceptor_.accept(code);
      if (stopping_ || code) return;
      const std::lock_guard lock(mutex_);
      Connection& one = connections_.emplace_back(std::move(socket));
      ++open_;
      const int number = accepted_++;
      one.thread = std::thread([this, &one, number] { Run(one.socket, number); });
    }
  }

  void Run(tcp::socket& socket, int number) {
    StreamRequest request;
    request.connection = number;
    error_code code;
    socket.set_option(tcp::no_delay(true), code);
    if (tls_) {
      asio::ssl::stream<tcp::socket&> stream(socket, context_);
      stream.handshake(asio::ssl::stream_base::server, code);
      request.client = code ? "" : SubjectOf(stream.native_handle());
      if (!code) Serve(stream, socket, request, handler_);
    } else {
      Serve(socket, socket, request, handler_);
    }
    const std::lock_guard lock(mutex_);
    socket.shutdown(tcp::socket::shutdown_both, code);
    --open_;
  }

  const Handler handler_;
  const bool tls_;
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_server};
  tcp::acceptor acceptor_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::thread thread_;
};

StreamServer::StreamServer(const StreamServerOptions& options, Handler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
StreamServer::~StreamServer() = default;

std::uint16_t StreamServer::port() const { return impl_->port_; }
int StreamServer::open_connections() const { return impl_->open_; }
int StreamServer::accepted() const { return impl_->accepted_; }

}  // namespace berth::test
