// SPDX-License-Identifier: Apache-2.0
//
// Listener: the listening socket of a server. Accepts on a thread of its own, which no handler can
// hold up, hands the connections to the shards in turn, and looks after the TLS files of new ones.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/dns_name.h"
#include "base/result.h"
#include "server/http/shard.h"
#include "server/http/transport.h"

namespace berth::http {

class Listener {
 public:
  // Opens, binds and listens, and then accepts. Requires: at least one shard. The service and the
  // shards outlive it. Error: kUnavailable "listen 127.0.0.1:80: permission denied". Throws what
  // std::thread and Asio's constructors throw.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> Start(
      Service& service, std::vector<std::unique_ptr<Shard>>& shards, const ListenAddress& address,
      std::optional<TlsFiles> tls);

  // Closes.
  ~Listener();

  [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }

  // Hands the clients that have connected to the shards, then stops listening. Returns when that is
  // done; a second call does nothing.
  void Close();

 private:
  Listener(Service& service, std::vector<std::unique_ptr<Shard>>& shards,
           std::optional<TlsFiles> tls);

  Status Open(const ListenAddress& address);
  // The thread.
  void Run();
  void Accept();
  void OnAccept(const boost::system::error_code& code, Shard& shard,
                boost::asio::ip::tcp::socket socket);
  // The socket is on the shard's loop.
  void Adopt(Shard& shard, boost::asio::ip::tcp::socket socket);
  void AcceptLater();
  void AcceptRest();
  void WatchTlsFiles();
  Shard& NextShard();

  Service& service_;
  std::vector<std::unique_ptr<Shard>>& shards_;
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::optional<TlsFiles> tls_;
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer tls_timer_;
  std::size_t next_shard_ = 0;
  std::thread thread_;
};

}  // namespace berth::http
