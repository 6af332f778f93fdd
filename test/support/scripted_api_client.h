// SPDX-License-Identifier: Apache-2.0
//
// ScriptedApiClient: an API server in memory that answers as a test says: one step per call of
// Stream, in order. After the last step every call waits until stop is requested.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/kube/client/api_client.h"

namespace berth::test {

class ScriptedApiClient final : public kube::ApiClient {
 public:
  struct Step {
    int status = 200;
    std::vector<std::string> pieces = {};  // of the body
    std::string error = {};                // after the pieces the connection breaks with it
    std::optional<Duration> retry_after = {};
    bool hang = false;  // after the pieces, until stop is requested
  };

  explicit ScriptedApiClient(std::deque<Step> steps) : steps_(std::move(steps)) {}

  Result<kube::ApiResponse> Send(const kube::ApiRequest&) override {
    return Fail(Errc::kUnavailable, "not scripted");
  }

  Result<kube::ApiResponse> Stream(const std::string& path, Duration, const std::stop_token& stop,
                                   const kube::StreamSink& sink) override {
    const Step step = Next(path);
    kube::ApiResponse answer{step.status, "", step.retry_after};
    for (const std::string& piece : step.pieces) {
      if (step.status != 200) {
        answer.body += piece;
      } else if (!sink(piece)) {
        return answer;
      }
    }
    if (!step.error.empty()) return Fail(Errc::kUnavailable, step.error);
    if (step.hang) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [] { return false; });
    }
    return answer;
  }

  // Waits until Stream was called so often; the paths so far.
  std::vector<std::string> AwaitCalls(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return paths_.size() >= count; });
    return paths_;
  }

 private:
  Step Next(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.push_back(path);
    changed_.notify_all();
    if (steps_.empty()) return {.hang = true};
    Step step = std::move(steps_.front());
    steps_.pop_front();
    return step;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Step> steps_;
  std::vector<std::string> paths_;
};

}  // namespace berth::test
