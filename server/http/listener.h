// SPDX-License-Identifier: Apache-2.0
//
// Listener: the listening socket of a server. Accepts on the loop of the first shard and hands the
// connections out in turn; looks after the TLS files of the new ones.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "server/http/listen_address.h"
#include "server/http/shard.h"
#include "server/http/tls_files.h"

namespace berth::http {

// Opens, binds and listens. Error: kUnavailable "listen 127.0.0.1:80: permission denied".
Result<boost::asio::ip::tcp::acceptor> OpenAcceptor(boost::asio::io_context& loop,
                                                    const ListenAddress& address,
                                                    const std::string& text);

// Start and Close from any thread but the shards', the rest on the loop of the first shard. Destroy
// it when the shards have stopped, and before they are destroyed.
class Listener {
 public:
  // Requires: at least one shard; the acceptor is on the loop of the first. The shards outlive it.
  Listener(Service& service, std::vector<std::unique_ptr<Shard>>& shards,
           boost::asio::ip::tcp::acceptor acceptor, std::optional<TlsFiles> tls);

  [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }

  void Start();

  // Serves who has already connected, then stops listening. Returns when that is done; a second
  // call does nothing.
  void Close();

 private:
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
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::optional<TlsFiles> tls_;
  boost::asio::steady_timer accept_timer_;
  boost::asio::steady_timer tls_timer_;
  std::size_t next_shard_ = 0;
};

}  // namespace berth::http
