// SPDX-License-Identifier: Apache-2.0
//
// Transport: the bytes of one accepted client, plain or through TLS, so that Connection need not
// know which. All operations are asynchronous on the loop of the socket.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "server/http/http_server.h"

namespace berth::http {

class Connection;

// The member of a connection that an operation calls back, with its outcome and the bytes it
// moved; keeps the connection, and so the transport and its buffers, alive until then.
struct Callback {
  std::shared_ptr<Connection> connection;
  void (Connection::*member)(const boost::system::error_code&, std::size_t);

  using Member = void (Connection::*)(const boost::system::error_code&, std::size_t);

  // What the member throws ends the connection, and nothing else.
  static void Call(Connection& connection, Member member, const boost::system::error_code& code,
                   std::size_t count);

  void operator()(const boost::system::error_code& code, std::size_t count = 0) const {
    Call(*connection, member, code, count);
  }
};

using WriteBuffers = std::array<boost::asio::const_buffer, 2>;

// One read and one write may be pending at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  // The TLS handshake; the TLS shutdown, which sends close_notify and waits for the client's. Plain
  // TCP has neither and calls back at once, within the call.
  virtual void Handshake(Callback callback) = 0;
  virtual void SayGoodbye(Callback callback) = 0;

  virtual void ReadSome(boost::asio::mutable_buffer buffer, Callback callback) = 0;
  virtual void WriteSome(const WriteBuffers& buffers, Callback callback) = 0;

  // The bytes below TLS.
  [[nodiscard]] virtual boost::asio::ip::tcp::socket& socket() = 0;
};

std::unique_ptr<Transport> MakePlainTransport(boost::asio::ip::tcp::socket socket);

// The transport keeps the context.
std::unique_ptr<Transport> MakeTlsTransport(boost::asio::ip::tcp::socket socket,
                                            std::shared_ptr<boost::asio::ssl::context> context);

// TlsFiles: the certificate, key and client CA files as a server context, renewed when they change
// (Kubernetes renews the files of a mounted secret in place).

// One thread.
class TlsFiles {
 public:
  // Errors name the option and the file; kInvalidArgument.
  [[nodiscard]] static Result<TlsFiles> Load(const TlsOptions& options);

  // What new connections use. Never null; the last content that could be loaded.
  [[nodiscard]] const std::shared_ptr<boost::asio::ssl::context>& context() const {
    return context_;
  }

  // When the certificate in use ends, in seconds since 1970.
  [[nodiscard]] std::int64_t expires() const;

  // Reads the files again. nullopt if nothing has changed since the last call; else whether the new
  // content is in use now.
  std::optional<Status> Reload();

 private:
  struct Content {
    std::string certificate;
    std::string key;
    std::string client_ca;
    bool operator==(const Content&) const = default;
  };

  explicit TlsFiles(const TlsOptions& options) : options_(options) {}

  static Result<Content> ReadFiles(const TlsOptions& options);
  static Result<std::shared_ptr<boost::asio::ssl::context>> MakeContext(const TlsOptions& options,
                                                                        const Content& content);

  TlsOptions options_;
  Content tried_;           // of the last successful reading, loadable or not
  std::string read_error_;  // of the last reading; empty: none
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace berth::http
