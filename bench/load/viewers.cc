// SPDX-License-Identifier: Apache-2.0
#include "bench/load/viewers.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "base/check.h"
#include "bench/http/http_client.h"
#include "bench/load/berth_server.h"
#include "bench/load/timed_call.h"
#include "bench/replay/http_calls.h"
#include "bench/replay/latency.h"

namespace berth::load {

namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using tcp = boost::asio::ip::tcp;

namespace {

using berth::http::HttpClient;

constexpr std::chrono::milliseconds kEvery(3000);

// One browser tab.
class Tab {
 public:
  explicit Tab(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    tcp::resolver resolver(context_);
    boost::asio::connect(socket_,
                         resolver.resolve(address.substr(0, colon), address.substr(colon + 1)));
  }

  // The bytes of the page's body.
  std::size_t Look(const std::string& path) {
    beast_http::request<beast_http::empty_body> request(beast_http::verb::get, path, 11);
    request.set(beast_http::field::host, "berth");
    request.set(beast_http::field::accept_encoding, "gzip, deflate, br");
    if (!tags_[path].empty()) request.set(beast_http::field::if_none_match, tags_[path]);
    beast_http::write(socket_, request);
    beast_http::response_parser<beast_http::string_body> parser;
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    beast_http::read(socket_, buffer_, parser);
    tags_[path] = std::string(parser.get()[beast_http::field::etag]);
    return parser.get().body().size();
  }

 private:
  boost::asio::io_context context_;
  tcp::socket socket_{context_};
  beast::flat_buffer buffer_;
  std::map<std::string, std::string> tags_;
};

// All of them, until it ends.
class Viewers {
 public:
  Viewers(int count, const std::string& address) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, address, i, count](const std::stop_token& stop) {
        Tab tab(address);
        Pause(stop, kEvery * i / count);  // spread over the three seconds
        while (!stop.stop_requested()) {
          bytes += tab.Look("/debug/live");
          ++pages;
          Pause(stop, kEvery);
        }
      });
    }
  }

  std::atomic<std::uint64_t> pages{0}, bytes{0};

 private:
  static void Pause(const std::stop_token& stop, std::chrono::milliseconds time) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, time, [] { return false; });
  }

  std::vector<std::jthread> threads_;
};

// Pods one after the other with a short pause between two.
void Place(HttpClient& client, const std::string& names, std::size_t& n, Times& times) {
  constexpr std::chrono::seconds kTurn(9);
  const auto end = std::chrono::steady_clock::now() + kTurn;
  for (; std::chrono::steady_clock::now() < end; ++n) {
    const std::string uid = "uid-" + std::to_string(n);
    const std::string gpus = R"("cpu":"8","memory":"32Gi","nvidia.com/gpu":")";
    const std::string body = FilterBody(PodJson(uid, gpus + (n % 7 == 0 ? "2\"" : "1\"")), names);
    Timed(client, "/extender/filter", body, times.filter_us);
    const std::string scored = Timed(client, "/extender/prioritize", body, times.prioritize_us);
    BERTH_CHECK(http::Post(client, "/extender/bind", BindBody(uid, BestOf(scored))).has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Print(const char* when, const char* verb, const std::vector<double>& us) {
  const auto summary = replay::Summarize(us);
  std::printf("%-8s %-10s p50 %7.2f ms  p99 %7.2f  max %7.2f\n", when, verb, summary.p50 / 1000,
              summary.p99 / 1000, summary.max / 1000);
}

}  // namespace

void MeasureViewers(std::size_t nodes, int viewers) {
  constexpr int kTurns = 5;
  const BerthServer server(nodes, true);
  HttpClient client = HttpClient::Connect(server.address()).value();
  const std::string names = server.NameList();
  Times warming, alone, watched;
  std::size_t n = 0;
  std::uint64_t pages = 0, bytes = 0;
  Place(client, names, n, warming);
  for (int turn = 0; turn < kTurns; ++turn) {
    Place(client, names, n, alone);
    const Viewers looking(viewers, server.address());
    Place(client, names, n, watched);
    pages += looking.pages;
    bytes += looking.bytes;
  }
  std::printf("%zu nodes of %d GPUs, %zu pods; %d viewers took %llu pages, %.1f MB\n", nodes,
              kGpusPerNode, n, viewers, static_cast<unsigned long long>(pages),
              static_cast<double>(bytes) / 1e6);
  Print("alone", "filter", alone.filter_us);
  Print("watched", "filter", watched.filter_us);
  Print("alone", "prioritize", alone.prioritize_us);
  Print("watched", "prioritize", watched.prioritize_us);
  std::printf("watched / alone, p99 of filter: %.2f\n",
              replay::Summarize(watched.filter_us).p99 / replay::Summarize(alone.filter_us).p99);
}

}  // namespace berth::load
