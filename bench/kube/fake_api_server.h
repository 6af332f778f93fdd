// SPDX-License-Identifier: Apache-2.0
//
// FakeApiServer: an API server (plain HTTP, our own HttpServer) that lists so many nodes and pods
// in pages and sends so many pod events in one watch. It is a process of its own, so that its time
// and memory are not measured.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace berth::kube_bench {

struct ClusterSize {
  std::size_t nodes = 5000, pods = 50'000, events = 100'000;
};

class FakeApiServer {
 public:
  // Starts it. Ends the program with a message if it does not come up.
  explicit FakeApiServer(const ClusterSize& size);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  pid_t pid_ = -1;
  std::string url_;
};

}  // namespace berth::kube_bench
