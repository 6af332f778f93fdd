// SPDX-License-Identifier: Apache-2.0
//
// SlowApi: the API server of the tests (test/support/fake_api_server.h) over HTTP, whose Bindings
// take their time: half of it before they are carried out, half of it before they are answered.
#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "test/support/fake_api_server.h"
#include "test/support/stream_server.h"

namespace berth::gang_trials {

class SlowApi {
 public:
  // What a kube-scheduler would see; called on the threads of the connections.
  struct Listener {
    std::function<void(const std::string&pod)> bound, woken;
  };

  explicit SlowApi(Duration binding);
  ~SlowApi();
  SlowApi(const SlowApi&) = delete;
  SlowApi& operator=(const SlowApi&) = delete;

  [[nodiscard]] std::string url() const;
  [[nodiscard]] test::FakeApiServer& objects() { return objects_; }

  // From now on. When it returns, the listener before is not called any more.
  void Tell(Listener listener);

 private:
  void Answer(const test::StreamRequest& request, test::StreamReply& reply);
  void Watch(const test::StreamRequest& request, test::StreamReply& reply);
  void List(const test::StreamRequest& request, test::StreamReply& reply);
  void Write(const test::StreamRequest& request, test::StreamReply& reply);

  const Duration binding_;
  test::FakeApiServer objects_;
  std::stop_source stop_;
  std::mutex mutex_;
  Listener listener_;
  test::StreamServer server_;  // last: its threads use the others
};

}  // namespace berth::gang_trials
