// SPDX-License-Identifier: Apache-2.0
#include "server/http/transport.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <cerrno>
#include <ctime>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/file.h"

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

// How OpenSSL reaches a socket. Its own BIO of a descriptor would go on with the number of one that
// is closed and has become another client's, and raises SIGPIPE.
class SocketBio {
 public:
  // Not null; throws bad_alloc. The socket outlives it.
  static BIO* Make(tcp::socket& socket) {
    static BIO_METHOD* const method = MakeMethod();
    BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
    if (bio == nullptr) throw std::bad_alloc();
    BIO_set_data(bio, &socket);
    BIO_set_init(bio, 1);
    return bio;
  }

 private:
  static BIO_METHOD* MakeMethod() {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (method == nullptr) return nullptr;
    BIO_meth_set_read(method, &Read);
    BIO_meth_set_write(method, &Write);
    BIO_meth_set_ctrl(method, [](BIO*, int command, long, void*) {
      return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1L : 0L;
    });
    return method;
  }

  static int DescriptorOf(BIO* bio) {
    return static_cast<tcp::socket*>(BIO_get_data(bio))->native_handle();
  }

  static int Read(BIO* bio, char* bytes, int count) {
    BIO_clear_retry_flags(bio);
    const auto got = recv(DescriptorOf(bio), bytes, static_cast<std::size_t>(count), 0);
    if (got < 0 && MayTryAgain()) BIO_set_retry_read(bio);
    return static_cast<int>(got);
  }

  static int Write(BIO* bio, const char* bytes, int count) {
    BIO_clear_retry_flags(bio);
    const auto sent = send(DescriptorOf(bio), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
    if (sent < 0 && MayTryAgain()) BIO_set_retry_write(bio);
    return static_cast<int>(sent);
  }

  static bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
};

// OpenSSL on the socket itself, which is waited for when OpenSSL says so. Asio's own stream holds
// 70 KiB for each connection, whether or not any bytes are on their way.
class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)),
        socket_(std::move(socket)),
        ssl_(SSL_new(context_->native_handle())) {
    if (ssl_ == nullptr) throw std::bad_alloc();
    BIO* const bio = SocketBio::Make(socket_);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
    error_code ignored;  // a socket that cannot be set fails when it is used
    socket_.non_blocking(true, ignored);
  }

  void Handshake(Callback callback) override {
    Do([](SSL* ssl, std::size_t&) { return SSL_do_handshake(ssl); }, std::move(callback));
  }

  // The second call waits for the client's close_notify.
  void SayGoodbye(Callback callback) override {
    const auto shut_down = [](SSL* ssl, std::size_t&) {
      const int result = SSL_shutdown(ssl);
      return result == 0 ? SSL_shutdown(ssl) : result;
    };
    Do(shut_down, std::move(callback));
  }

  void ReadSome(asio::mutable_buffer buffer, Callback callback) override {
    const auto read = [buffer](SSL* ssl, std::size_t& count) {
      return SSL_read_ex(ssl, buffer.data(), buffer.size(), &count);
    };
    Do(read, std::move(callback));
  }

  // A short header and a short body go out in one record. What is tried again is the same bytes.
  void WriteSome(const WriteBuffers& buffers, Callback callback) override {
    const auto write = [buffers](SSL* ssl, std::size_t& count) {
      std::array<char, 8192> together;
      asio::const_buffer bytes = buffers[0].size() > 0 ? buffers[0] : buffers[1];
      if (buffers[0].size() > 0 && buffers[1].size() > 0) {
        bytes = asio::buffer(together, asio::buffer_copy(asio::buffer(together), buffers));
      }
      return SSL_write_ex(ssl, bytes.data(), bytes.size(), &count);
    };
    Do(write, std::move(callback));
  }

  tcp::socket& socket() override { return socket_; }

 private:
  struct SslFree {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  // Tries until it need not wait. The outcome is posted, so that callbacks do not nest.
  template <class Operation>
  void Do(Operation operation, Callback callback) {
    std::size_t count = 0;
    ERR_clear_error();
    errno = 0;
    const int result = operation(ssl_.get(), count);
    const int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      const auto what =
          error == SSL_ERROR_WANT_READ ? tcp::socket::wait_read : tcp::socket::wait_write;
      socket_.async_wait(
          what, [this, operation, callback = std::move(callback)](const error_code& code) mutable {
            if (code) return callback(code);
            Again(operation, std::move(callback));
          });
      return;
    }
    asio::post(socket_.get_executor(), [callback = std::move(callback), code = CodeOf(error),
                                        count] { callback(code, count); });
  }

  template <class Operation>
  void Again(Operation operation, Callback callback) {
    const Callback otherwise = callback;
    try {
      Do(operation, std::move(callback));
    } catch (const std::exception&) {
      otherwise(asio::error::no_memory);
    }
  }

  static error_code CodeOf(int error) {
    if (error == SSL_ERROR_NONE) return {};
    if (error == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
    if (error == SSL_ERROR_SYSCALL && errno != 0) return {errno, boost::system::system_category()};
    const unsigned long code = ERR_get_error();
    if (code == 0) return asio::error::connection_reset;
    return {static_cast<int>(code), asio::error::get_ssl_category()};
  }

  std::shared_ptr<asio::ssl::context> context_;
  tcp::socket socket_;
  std::unique_ptr<SSL, SslFree> ssl_;
};

Result<std::string> ReadPart(std::string_view option, const std::string& path) {
  Result<std::string> text = ReadFile(path);
  if (!text) return Invalid(std::string(option) + ": " + text.error().message);
  return text;
}

tl::unexpected<Error> CannotUse(std::string_view option, const std::string& path,
                                const error_code& code) {
  return Invalid(std::string(option) + ": cannot use " + path + ": " + code.message());
}

// The context's settings that do not depend on files. Go, and so Kubernetes, starts at TLS 1.2.
Status Configure(asio::ssl::context& context) {
  error_code code;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                          asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                          asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression,
                      code);
  SSL_CTX* const native = context.native_handle();
  if (code || SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) != 1) {
    return Fail(Errc::kInternal, "tls: cannot set the protocol versions");
  }
  // Clients keep their connections; resumption would only bypass a renewed client CA.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // Thousands of idle connections need no record buffers. A record that is tried again may lie
  // elsewhere, and a write may end with it (transport.cc).
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                               SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Without this an encrypted key would make the process ask for its password on the terminal.
  context.set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); }, code);
  return {};
}

}  // namespace

std::unique_ptr<Transport> MakePlainTransport(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> MakeTlsTransport(tcp::socket socket,
                                            std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsTransport>(std::move(socket), std::move(context));
}

Result<TlsFiles> TlsFiles::Load(const TlsOptions& options) {
  TlsFiles files(options);
  BERTH_TRY(files.tried_, ReadFiles(options));
  BERTH_TRY(files.context_, MakeContext(options, files.tried_));
  return files;
}

std::int64_t TlsFiles::expires() const {
  const X509* const certificate = SSL_CTX_get0_certificate(context_->native_handle());
  tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return 0;
  return timegm(&end);
}

std::optional<Status> TlsFiles::Reload() {
  Result<Content> content = ReadFiles(options_);
  if (!content) {
    if (std::exchange(read_error_, content.error().message) == content.error().message) {
      return std::nullopt;
    }
    return tl::unexpected(std::move(content).error());
  }
  read_error_.clear();
  if (*content == tried_) {
    return std::nullopt;
  }
  tried_ = *std::move(content);
  Result<std::shared_ptr<asio::ssl::context>> context = MakeContext(options_, tried_);
  if (!context) {
    return tl::unexpected(std::move(context).error());
  }
  context_ = *std::move(context);
  return Status();
}

Result<TlsFiles::Content> TlsFiles::ReadFiles(const TlsOptions& options) {
  Content content;
  BERTH_TRY(content.certificate, ReadPart("tls.certificate_file", options.certificate_file));
  BERTH_TRY(content.key, ReadPart("tls.key_file", options.key_file));
  if (!options.client_ca_file.empty()) {
    BERTH_TRY(content.client_ca, ReadPart("tls.client_ca_file", options.client_ca_file));
  }
  return content;
}

Result<std::shared_ptr<asio::ssl::context>> TlsFiles::MakeContext(const TlsOptions& options,
                                                                  const Content& content) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  BERTH_TRY_STATUS(Configure(*context));
  error_code code;
  context->use_certificate_chain(asio::buffer(content.certificate), code);
  if (code) {
    return CannotUse("tls.certificate_file", options.certificate_file, code);
  }
  // Also checks that the key belongs to the certificate.
  context->use_private_key(asio::buffer(content.key), asio::ssl::context::pem, code);
  if (code) {
    return CannotUse("tls.key_file", options.key_file, code);
  }
  if (!options.client_ca_file.empty()) {
    context->add_certificate_authority(asio::buffer(content.client_ca), code);
    if (code) {
      return CannotUse("tls.client_ca_file", options.client_ca_file, code);
    }
    context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, code);
    if (code) {
      return CannotUse("tls.client_ca_file", options.client_ca_file, code);
    }
  }
  return context;
}

}  // namespace berth::http
