// SPDX-License-Identifier: Apache-2.0
//
// Transport: the bytes of one accepted client, plain or through TLS, so that Connection need not
// know which. All operations are asynchronous on the loop of the socket.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>

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

}  // namespace berth::http
