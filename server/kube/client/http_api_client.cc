// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/http_api_client.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>  // Boost 1.74 forgets it
#include <vector>

#include <cpprest/http_client.h>
#include <cpprest/producerconsumerstream.h>
#include <pplx/threadpool.h>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "server/kube/client/body_queue.h"
#include "server/kube/client/client_tls.h"

namespace berth::kube {
namespace {

namespace asio = boost::asio;
namespace rest = web::http;
using asio::ip::tcp;
using std::chrono::seconds;

constexpr std::size_t kQueueBytes = std::size_t{256} << 10;   // per answer, see BodyQueue
constexpr std::size_t kMaxBodyBytes = std::size_t{16} << 20;  // that Send keeps
constexpr std::size_t kReadBytes = std::size_t{256} << 10;    // of a body that is not chunked
constexpr int kPoolThreads = 1;  // it only moves bytes; a second one would be woken for every step
constexpr seconds kHeadTimeout(30);
constexpr seconds kMaxRetryAfter(300);
// Our own deadlines rule; the library's timer would have one length for every kind of request.
constexpr std::chrono::hours kLibraryTimeout(24);

// The library's own threads are 40, and every read hops between them.
void LimitPool() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(kPoolThreads);
    } catch (const std::exception&) {  // somebody has used it before: it works as it is
    }
  });
}

// What the library writes an answer's body into. Nobody reads it from there.
class QueueBuffer final
    : public concurrency::streams::details::basic_producer_consumer_buffer<uint8_t> {
 public:
  explicit QueueBuffer(std::shared_ptr<BodyQueue> queue)
      : basic_producer_consumer_buffer(1), queue_(std::move(queue)) {}

 private:
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override {
    pplx::task_completion_event<size_t> taken;
    const std::string_view view(reinterpret_cast<const char*>(bytes), count);
    if (queue_->Put(view, [taken, count] { taken.set(count); })) {
      return pplx::task_from_result(count);
    }
    return pplx::create_task(taken);
  }
  pplx::task<int_type> _putc(uint8_t byte) override {
    return _putn(&byte, 1).then([byte](size_t) { return static_cast<int_type>(byte); });
  }
  uint8_t* _alloc(size_t) override { return nullptr; }  // what is written comes by _putn

  const std::shared_ptr<BodyQueue> queue_;
};

// The library asks before the socket is open, when options are lost: it is opened here.
void OpenWithKeepalive(tcp::socket& socket, const tcp& protocol) {
  boost::system::error_code ignored;
  if (socket.is_open()) return;
  if (socket.open(protocol, ignored)) return;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 15);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, 30'000);
}

std::optional<Duration> RetryAfterOf(const rest::http_headers& headers) {
  const auto found = headers.find("Retry-After");
  if (found == headers.end()) return std::nullopt;
  const auto count = ParseInt(found->second, 0, std::int64_t{1} << 31);
  if (!count) return std::nullopt;  // a date: API servers do not send one
  return std::min<Duration>(seconds(*count), kMaxRetryAfter);
}

std::string ProblemOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& problem) {
    return *problem.what() != '\0' ? problem.what() : "unknown error";
  } catch (...) {
    return "unknown error";
  }
}

// Tells the queue how the request goes on, on the library's threads.
void Follow(const pplx::task<rest::http_response>& request,
            const std::shared_ptr<BodyQueue>& queue) {
  request.then([queue](const pplx::task<rest::http_response>& head) {
    try {
      const rest::http_response response = head.get();
      queue->Head(response.status_code(), RetryAfterOf(response.headers()));
      response.content_ready().then([queue](const pplx::task<rest::http_response>& body) {
        try {
          body.get();
          queue->End("");
        } catch (...) {
          queue->End(ProblemOf(std::current_exception()));
        }
      });
    } catch (...) {
      queue->End(ProblemOf(std::current_exception()));
    }
  });
}

std::string InSeconds(Duration duration) {
  return std::to_string(std::chrono::ceil<seconds>(duration).count()) + " s";
}

class Counters {
 public:
  void Answered(const std::string& method, int status) {
    const auto& methods = ApiClientStats::kMethods;
    const auto row = std::min<std::size_t>(
        static_cast<std::size_t>(std::ranges::find(methods, method) - methods.begin()),
        methods.size() - 1);
    ++answers_[row][static_cast<std::size_t>(std::clamp(status / 100, 1, 5))];
  }

  ApiClientStats Read() const {
    ApiClientStats stats;
    for (std::size_t row = 0; row < answers_.size(); ++row) {
      std::ranges::copy(answers_[row], stats.answers[row].begin());
    }
    stats.failures = failures;
    stats.in_flight = in_flight;
    return stats;
  }

  std::atomic<std::uint64_t> failures = 0, in_flight = 0;

 private:
  std::array<std::array<std::atomic<std::uint64_t>, 6>, ApiClientStats::kMethods.size()> answers_{};
};

// With an IPv6 address as the library resolves it: without brackets, and with a port, by which it
// knows where the address ends.
Result<web::uri> ServerOf(const std::string& text) {
  const web::uri server(text);
  if ((server.scheme() != "https" && server.scheme() != "http") || server.host().empty()) {
    return Invalid("server: want https://HOST:PORT, got \"" + text + "\"");
  }
  const std::string& host = server.host();
  if (!host.starts_with('[')) return server;
  boost::system::error_code wrong;
  const auto address = asio::ip::make_address_v6(host.substr(1, host.size() - 2), wrong);
  if (wrong || address.scope_id() != 0) {
    return Invalid("server: want a name or an address without a zone, got \"" + text + "\"");
  }
  web::uri_builder plain(server);
  plain.set_host(address.to_string());
  if (server.port() <= 0) plain.set_port(server.scheme() == "https" ? 443 : 80);
  return plain.to_uri();
}

}  // namespace

class HttpApiClient::Impl {
 public:
  Impl(const ClusterAccess& access, const web::uri& server, std::shared_ptr<ClientTls> tls)
      : token_(access.token, access.token_file),
        host_header_(HostHeader(access, server)),
        tls_(std::move(tls)),
        client_(server, Configuration(access, server)) {}

  struct Limits {
    Duration head, idle;
    Instant deadline = Instant::max();
  };

  // Where the body of a 200 goes; other bodies are kept, and all where there is no sink.
  struct Body {
    BodyQueue::Wake wake = BodyQueue::Wake::kAtTheEnd;
    const StreamSink* sink = nullptr;
  };

  Result<ApiResponse> Call(const ApiRequest& request, const Limits& limits,
                           const std::stop_token& stop, const Body& body) {
    ++counters_.in_flight;
    const std::string token = token_.Current();
    auto answer = Exchange(request, token, limits, stop, body);
    if (answer && answer->status == 401 && token_.RenewedAfter(token)) {
      counters_.Answered(request.method, 401);
      answer = Exchange(request, token_.Current(), limits, stop, body);
    }
    --counters_.in_flight;
    if (answer && answer->status != 0) counters_.Answered(request.method, answer->status);
    if (!answer) ++counters_.failures;
    return answer;
  }

  Result<ApiResponse> Get(const std::string& path, Duration idle_timeout,
                          const std::stop_token& stop, const Body& body) {
    ApiRequest request;
    request.path = path;
    return Call(request, {std::min<Duration>(idle_timeout, kHeadTimeout), idle_timeout}, stop,
                body);
  }

  [[nodiscard]] ApiClientStats stats() const { return counters_.Read(); }

 private:
  // "": the library makes one, which of an IPv6 address would lack the brackets.
  static std::string HostHeader(const ClusterAccess& access, const web::uri& server) {
    if (!access.tls_server_name.empty()) return access.tls_server_name;
    if (server.host().find(':') == std::string::npos) return "";
    return "[" + server.host() + "]:" + std::to_string(server.port());
  }

  rest::client::http_client_config Configuration(const ClusterAccess& access,
                                                 const web::uri& server) const {
    rest::client::http_client_config config;
    config.set_timeout(kLibraryTimeout);
    config.set_max_redirects(0);  // a token is for one server
    config.set_chunksize(kReadBytes);
    config.set_validate_certificates(!access.insecure_skip_tls_verify);
    boost::system::error_code no_address;
    const auto address = asio::ip::make_address(server.host(), no_address);
    config.set_tlsext_sni_enabled(bool(no_address) || !access.tls_server_name.empty());
    if (server.scheme() == "https") {
      config.set_ssl_context_callback(
          [tls = tls_](asio::ssl::context& context) { tls->Apply(context.native_handle()); });
    }
    if (!no_address) {
      const tcp protocol = address.is_v6() ? tcp::v6() : tcp::v4();
      config.set_nativehandle_options([https = server.scheme() == "https", protocol](void* handle) {
        using Secure = asio::ssl::stream<tcp::socket&>;
        OpenWithKeepalive(
            https ? static_cast<Secure*>(handle)->next_layer() : *static_cast<tcp::socket*>(handle),
            protocol);
      });
    }
    return config;
  }

  Result<rest::http_request> RequestOf(const ApiRequest& wanted, const std::string& token,
                                       const std::shared_ptr<BodyQueue>& queue) const {
    try {
      rest::http_request request(wanted.method);
      request.set_request_uri(web::uri(wanted.path));
      if (!wanted.body.empty()) {
        request.set_body(std::vector<unsigned char>(wanted.body.begin(), wanted.body.end()));
        request.headers().set_content_type(wanted.content_type);
      }
      request.headers().add("User-Agent", "berth/" + std::string(BerthVersion()));
      request.headers().add("Accept", "application/json");
      if (!token.empty()) request.headers().add("Authorization", "Bearer " + token);
      // The library takes from it the name for SNI.
      if (!host_header_.empty()) request.headers().add("Host", host_header_);
      const concurrency::streams::streambuf<uint8_t> buffer(std::make_shared<QueueBuffer>(queue));
      request.set_response_stream(buffer.create_ostream());
      return request;
    } catch (const std::exception& problem) {
      return Invalid(wanted.method + " " + wanted.path + ": " + problem.what());
    }
  }

  Result<ApiResponse> Exchange(const ApiRequest& wanted, const std::string& token,
                               const Limits& limits, const std::stop_token& stop,
                               const Body& body) {
    const auto queue = std::make_shared<BodyQueue>(kQueueBytes, body.wake);
    BERTH_TRY(const rest::http_request request, RequestOf(wanted, token, queue));
    pplx::cancellation_token_source cancel;
    const std::stop_callback on_stop(stop, [&queue] { queue->Stop(); });
    try {
      Follow(client_.request(request, cancel.get_token()), queue);
    } catch (...) {
      queue->End(ProblemOf(std::current_exception()));
    }
    bool complete = false;
    auto answer = Receive(wanted, *queue, limits, body.sink, complete);
    if (!complete) {  // the connection is of no more use
      queue->Close();
      cancel.cancel();
    }
    return answer;
  }

  Result<ApiResponse> Receive(const ApiRequest& request, BodyQueue& queue, const Limits& limits,
                              const StreamSink* sink, bool& complete) {
    ApiResponse answer;
    std::string bytes;
    while (true) {
      const bool headed = queue.status() != 0;
      const Duration patience = headed ? limits.idle : limits.head;
      const Instant limit = std::min(limits.deadline, std::chrono::steady_clock::now() + patience);
      const BodyQueue::Event event = queue.Wait(bytes, limit);
      answer.status = queue.status();
      answer.retry_after = queue.retry_after();
      if (event == BodyQueue::Event::kStopped) return answer;
      if (event == BodyQueue::Event::kTimeout) {
        if (!headed && answer.status != 0) continue;  // the head came: now the body has its time
        return Broken(request, answer.status == 0 ? "no answer within " + InSeconds(limits.head)
                                                  : "nothing came for " + InSeconds(limits.idle));
      }
      if (event == BodyQueue::Event::kEnd) {
        const std::string problem = queue.problem();
        complete = problem.empty();
        if (complete) return answer;
        return Broken(request, problem);
      }
      if (sink != nullptr && answer.status == 200) {
        if (!(*sink)(bytes)) return answer;
        continue;
      }
      answer.body += bytes;
      if (answer.body.size() > kMaxBodyBytes) return Broken(request, "the answer is too large");
    }
  }

  tl::unexpected<Error> Broken(const ApiRequest& request, const std::string& problem) const {
    const std::string refused = tls_->TakeProblem();
    return Fail(Errc::kUnavailable, request.method + " " + request.path + ": " + problem +
                                        (refused.empty() ? "" : ": " + refused));
  }

  TokenSource token_;
  const std::string host_header_;
  const std::shared_ptr<ClientTls> tls_;
  rest::client::http_client client_;
  Counters counters_;
};

HttpApiClient::HttpApiClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpApiClient::~HttpApiClient() = default;

Result<std::unique_ptr<HttpApiClient>> HttpApiClient::Create(const ClusterAccess& access) {
  LimitPool();
  try {
    BERTH_TRY(const web::uri server, ServerOf(access.server));
    if (access.token.empty() && !access.token_file.empty()) {
      if (const auto token = ReadFile(access.token_file); !token) {
        return Invalid("token_file: " + token.error().message);
      }
    }
    const bool renamed = !access.tls_server_name.empty();
    BERTH_TRY(auto tls,
              ClientTls::Create(access, renamed ? access.tls_server_name : server.host()));
    return std::unique_ptr<HttpApiClient>(
        new HttpApiClient(std::make_unique<Impl>(access, server, std::move(tls))));
  } catch (const std::exception& problem) {
    return Invalid("server: cannot use \"" + access.server + "\": " + problem.what());
  }
}

Result<ApiResponse> HttpApiClient::Send(const ApiRequest& request) {
  const Instant deadline = std::chrono::steady_clock::now() + request.timeout;
  return impl_->Call(request, {request.timeout, request.timeout, deadline}, {}, {});
}

Result<ApiResponse> HttpApiClient::Stream(const std::string& path, Duration idle_timeout,
                                          const std::stop_token& stop, const StreamSink& sink) {
  return impl_->Get(path, idle_timeout, stop, {BodyQueue::Wake::kAlways, &sink});
}

Result<ApiResponse> HttpApiClient::Download(const std::string& path, Duration idle_timeout,
                                            const std::stop_token& stop, const StreamSink& sink) {
  return impl_->Get(path, idle_timeout, stop, {BodyQueue::Wake::kSeldom, &sink});
}

ApiClientStats HttpApiClient::stats() const { return impl_->stats(); }

}  // namespace berth::kube
