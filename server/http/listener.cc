// SPDX-License-Identifier: Apache-2.0
#include "server/http/listener.h"

#include <chrono>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include "base/keep_going.h"
#include "server/http/connection.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Clients of one burst wait here to be accepted; the kernel cuts it to net.core.somaxconn.
constexpr int kBacklog = 4096;

// Without descriptors (or memory) accept fails at once each time: a pause keeps it from spinning.
constexpr std::chrono::milliseconds kAcceptPause{100};

Error CannotListen(const std::string& text, const error_code& code) {
  std::string reason = code.message();
  if (!reason.empty() && reason[0] >= 'A' && reason[0] <= 'Z') {
    reason[0] = static_cast<char>(reason[0] - 'A' + 'a');
  }
  return Error{Errc::kUnavailable, "listen " + text + ": " + reason};
}

Result<tcp::endpoint> Resolve(asio::io_context& loop, const ListenAddress& address,
                              const std::string& text) {
  error_code code;
  const asio::ip::address literal = asio::ip::make_address(address.host, code);
  if (!code) {
    return tcp::endpoint(literal, address.port);
  }
  tcp::resolver resolver(loop);
  const auto found = resolver.resolve(address.host, "", tcp::resolver::passive, code);
  if (code || found.empty()) {
    return tl::unexpected(CannotListen(text, code));
  }
  return tcp::endpoint(found.begin()->endpoint().address(), address.port);
}

// One of the open connections until it is released, also if memory runs out on the way.
class OpenOne {
 public:
  explicit OpenOne(OpenCount& count) : count_(&count) { count_->Increment(); }
  OpenOne(OpenOne&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  ~OpenOne() {
    if (count_ != nullptr) count_->Decrement();
  }
  void Release() { count_ = nullptr; }

 private:
  OpenCount* count_;
};

enum class Family { kAsEndpoint, kBoth };

error_code Listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, Family family) {
  error_code code;
  acceptor.open(endpoint.protocol(), code);
  if (!code) {
    acceptor.set_option(tcp::acceptor::reuse_address(true), code);
  }
  if (!code && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(family == Family::kAsEndpoint), code);
  }
  if (!code) {
    acceptor.bind(endpoint, code);
  }
  if (!code) {
    acceptor.listen(kBacklog, code);
  }
  if (!code) {
    acceptor.non_blocking(true, code);
  }
  if (code) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return code;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Start(Service& service,
                                                  std::vector<std::unique_ptr<Shard>>& shards,
                                                  const ListenAddress& address,
                                                  std::optional<TlsFiles> tls) {
  std::unique_ptr<Listener> listener(new Listener(service, shards, std::move(tls)));
  BERTH_TRY_STATUS(listener->Open(address));
  listener->Accept();
  listener->WatchTlsFiles();
  listener->thread_ = std::thread([&accepting = *listener] { accepting.Run(); });
  return listener;
}

Listener::Listener(Service& service, std::vector<std::unique_ptr<Shard>>& shards,
                   std::optional<TlsFiles> tls)
    : service_(service),
      shards_(shards),
      loop_(1),
      acceptor_(loop_),
      tls_(std::move(tls)),
      accept_timer_(loop_),
      tls_timer_(loop_) {}

Listener::~Listener() { Close(); }

Status Listener::Open(const ListenAddress& address) {
  const std::string& text = service_.options.listen;
  error_code code;
  if (address.host.empty()) {
    code = Listen(acceptor_, {tcp::v6(), address.port}, Family::kBoth);
    if (code == asio::error::address_family_not_supported ||
        code == boost::system::errc::address_not_available) {
      code = Listen(acceptor_, {tcp::v4(), address.port}, Family::kAsEndpoint);  // no IPv6 here
    }
  } else {
    BERTH_TRY(const tcp::endpoint endpoint, Resolve(loop_, address, text));
    code = Listen(acceptor_, endpoint, Family::kAsEndpoint);
  }
  if (code) {
    return tl::unexpected(CannotListen(text, code));
  }
  endpoint_ = acceptor_.local_endpoint(code);
  return {};
}

void Listener::Close() {
  if (!thread_.joinable()) {
    return;
  }
  asio::post(loop_, [this] {
    AcceptRest();
    error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    tls_timer_.cancel();
  });
  thread_.join();
}

// Running out of memory costs the client that came just then, and may cost what waits for the next
// one: Asio makes its socket before it calls back.
void Listener::Run() {
  bool begins_anew = false;
  const auto run = [&] {
    if (begins_anew && acceptor_.is_open()) {
      error_code ignored;
      loop_.restart();  // it has stopped if nothing waited any more
      acceptor_.cancel(ignored);
      accept_timer_.cancel();
      tls_timer_.cancel();
      Accept();
      WatchTlsFiles();
    }
    begins_anew = false;
    loop_.run();
  };
  KeepGoing(run, [&] {
    begins_anew = true;
    service_.counters.refused_connections.Increment();
  });
}

void Listener::Accept() {
  Shard& shard = NextShard();
  acceptor_.async_accept(shard.loop(), [this, &shard](const error_code& code, tcp::socket socket) {
    OnAccept(code, shard, std::move(socket));
  });
}

void Listener::OnAccept(const error_code& code, Shard& shard, tcp::socket socket) {
  if (!code) {
    Adopt(shard, std::move(socket));
  }
  if (!acceptor_.is_open() || code == asio::error::operation_aborted) {
    return;
  }
  if (!code || code == asio::error::connection_aborted) {
    Accept();
    return;
  }
  service_.counters.refused_connections.Increment();
  AcceptLater();
}

Shard& Listener::NextShard() {
  next_shard_ = (next_shard_ + 1) % shards_.size();
  return *shards_[next_shard_];
}

void Listener::AcceptLater() {
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const error_code& code) {
    if (!code && acceptor_.is_open()) {
      Accept();
    }
  });
}

void Listener::Adopt(Shard& shard, tcp::socket socket) {
  service_.counters.accepted.Increment();
  if (service_.open.count() >= static_cast<std::size_t>(service_.options.max_connections)) {
    service_.counters.refused_connections.Increment();
    return;  // closes it
  }
  std::shared_ptr<asio::ssl::context> context = tls_ ? tls_->context() : nullptr;
  asio::post(shard.loop(), [open = OpenOne(service_.open), &shard, context = std::move(context),
                            socket = std::move(socket),
                            accepted = std::chrono::steady_clock::now()]() mutable {
    auto transport = context != nullptr ? MakeTlsTransport(std::move(socket), std::move(context))
                                        : MakePlainTransport(std::move(socket));
    const auto connection = std::make_shared<Connection>(shard, std::move(transport), accepted);
    open.Release();  // the connection's from here on
    connection->Serve();
  });
}

// Closing the socket resets the clients that the kernel has connected and we have not accepted yet.
void Listener::AcceptRest() {
  for (;;) {
    error_code code;
    Shard& shard = NextShard();
    tcp::socket socket(shard.loop());
    acceptor_.accept(socket, code);
    if (code) {
      return;
    }
    Adopt(shard, std::move(socket));
  }
}

void Listener::WatchTlsFiles() {
  if (!tls_) {
    return;
  }
  service_.counters.certificate_expires.store(tls_->expires(), std::memory_order_relaxed);
  tls_timer_.expires_after(service_.options.tls->reload_interval);
  tls_timer_.async_wait([this](const error_code& code) {
    if (code || !acceptor_.is_open()) {
      return;
    }
    const std::optional<Status> outcome = tls_->Reload();
    if (outcome && service_.options.tls->on_reload) {
      service_.options.tls->on_reload(*outcome);
    }
    WatchTlsFiles();
  });
}

}  // namespace berth::http
