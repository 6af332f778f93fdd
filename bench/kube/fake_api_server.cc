// SPDX-License-Identifier: Apache-2.0
#include "bench/kube/fake_api_server.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "bench/kube/api_pages.h"
#include "server/http/http_server.h"

namespace berth::kube_bench {
namespace {

constexpr std::size_t kEventsPerAnswer = 1000;
constexpr std::size_t kFirstVersion = 1'000'000;

std::size_t NumberAfter(const std::string& query, const std::string& key, std::size_t otherwise) {
  const std::size_t at = query.find(key + "=");
  if (at == std::string::npos) return otherwise;
  const std::size_t begin = at + key.size() + 1;
  const auto number =
      ParseInt(query.substr(begin, query.find('&', begin) - begin), 0, std::int64_t{1} << 40);
  return number ? static_cast<std::size_t>(*number) : otherwise;
}

std::string Watch(const ClusterSize& size, std::size_t version) {
  const std::size_t done = version - kFirstVersion;
  const std::size_t end = std::min(size.events, done + kEventsPerAnswer);
  std::string body;
  for (std::size_t i = done; i < end; ++i) {
    body += EventOf(i * 7919 % std::max<std::size_t>(size.pods, 1), kFirstVersion + i + 1);
  }
  return body;
}

http::HttpResponse Answer(const ClusterSize& size, const http::HttpRequest& request) {
  const std::string query(request.query);
  const bool pods = request.path == "/api/v1/pods";
  http::HttpResponse response;
  response.content_type = "application/json";
  if (query.find("watch=1") != std::string::npos) {
    response.body = pods ? Watch(size, NumberAfter(query, "resourceVersion", kFirstVersion)) : "";
    return response;
  }
  const std::size_t count = pods ? size.pods : size.nodes;
  const std::size_t begin = NumberAfter(query, "continue", 0);
  const std::size_t end = std::min(count, begin + NumberAfter(query, "limit", count));
  response.body = ListPageOf(pods ? Kind::kPod : Kind::kNode, begin, end,
                             end < count ? std::to_string(end) : "");
  return response;
}

[[noreturn]] void Serve(const ClusterSize& size, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  http::HttpServerOptions options;
  options.listen = "127.0.0.1:0";
  auto server = http::HttpServer::Start(
      options, [size](http::HttpRequest& request) { return Answer(size, request); });
  const std::string line = server ? "http://" + (*server)->address() : server.error().message;
  const ssize_t written = write(out, line.data(), line.size());
  close(out);
  while (written > 0) pause();
  std::_Exit(1);
}

}  // namespace

FakeApiServer::FakeApiServer(const ClusterSize& size) {
  int ends[2] = {-1, -1};
  if (pipe(ends) == 0) pid_ = fork();
  if (pid_ == 0) Serve(size, ends[1]);
  close(ends[1]);
  std::array<char, 256> text{};
  for (ssize_t count = 1; pid_ > 0 && count > 0;) {
    count = read(ends[0], text.data(), text.size());
    if (count > 0) url_.append(text.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  if (!url_.starts_with("http://")) {
    std::fprintf(stderr, "berth-kube-bench: no API server: %s\n", url_.c_str());
    std::exit(1);
  }
}

FakeApiServer::~FakeApiServer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace berth::kube_bench
