// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/gang_trials/slow_api.h"

#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

namespace berth::gang_trials {
namespace {

constexpr Duration kIdle = std::chrono::minutes(10);

// "/api/v1/namespaces/ns/pods/NAME/binding?timeout=..." -> NAME
std::string PodOf(std::string_view path) {
  constexpr std::string_view kPods = "/pods/";
  const std::size_t begin = path.find(kPods) + kPods.size();
  return std::string(path.substr(begin, path.find('/', begin) - begin));
}

}  // namespace

SlowApi::SlowApi(Duration binding)
    : binding_(binding),
      server_({}, [this](const test::StreamRequest& request, test::StreamReply& reply) {
        Answer(request, reply);
      }) {}

SlowApi::~SlowApi() { stop_.request_stop(); }

std::string SlowApi::url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

void SlowApi::Tell(Listener listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void SlowApi::Answer(const test::StreamRequest& request, test::StreamReply& reply) {
  if (request.method != "GET") return Write(request, reply);
  if (request.target.find("watch=1") != std::string::npos) return Watch(request, reply);
  return List(request, reply);
}

void SlowApi::Watch(const test::StreamRequest& request, test::StreamReply& reply) {
  reply.BeginChunks();
  (void)objects_.Stream(request.target, kIdle, stop_.get_token(),
                        [&reply](std::string_view bytes) { return reply.Chunk(bytes); });
  reply.EndChunks();
}

void SlowApi::List(const test::StreamRequest& request, test::StreamReply& reply) {
  if (request.target.find('?') == std::string::npos) return Write(request, reply);
  std::string body;
  const auto answer =
      objects_.Stream(request.target, kIdle, stop_.get_token(), [&body](std::string_view bytes) {
        body += bytes;
        return true;
      });
  if (answer) reply.Whole(answer->status, answer->status == 200 ? body : answer->body);
}

void SlowApi::Write(const test::StreamRequest& request, test::StreamReply& reply) {
  const bool is_binding = request.target.find("/binding") != std::string::npos;
  if (is_binding) std::this_thread::sleep_for(binding_ / 2);
  const auto answer = objects_.Send({.method = request.method,
                                     .path = request.target,
                                     .body = request.body,
                                     .content_type = request.content_type});
  if (answer && answer->ok() && (is_binding || request.method == "PATCH")) {
    const std::lock_guard lock(mutex_);
    const auto& tell = is_binding ? listener_.bound : listener_.woken;
    if (tell) tell(PodOf(request.target));
  }
  if (is_binding) std::this_thread::sleep_for(binding_ / 2);
  if (answer) reply.Whole(answer->status, answer->body);
}

}  // namespace berth::gang_trials
