// SPDX-License-Identifier: Apache-2.0
//
// HttpApiClient: the API server over HTTPS (or HTTP, for tests and proxies on this host).
//
// One client keeps its connections; a token file is followed as it rotates, and after a 401 read
// again for one more try. CA and client certificate are read once, at the start. A server that has
// closed an idle connection gets the request once more on a new one, so that even a POST may arrive
// twice.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/kubeconfig.h"
#include "server/kube/client/api_client.h"

namespace berth::kube {

// Totals since Create, except for in_flight. Not one consistent cut: each number is read alone.
struct ApiClientStats {
  static constexpr std::array<std::string_view, 6> kMethods = {"GET",   "POST",   "PUT",
                                                               "PATCH", "DELETE", "other"};
  // By method and class of the status: [0][2] GETs with 2xx ... [5]: 5xx; [m][0] is not used.
  std::array<std::array<std::uint64_t, 6>, kMethods.size()> answers{};
  std::uint64_t failures = 0;  // no answer, or a body that broke off
  std::uint64_t in_flight = 0;
};

class HttpApiClient final : public ApiClient {
 public:
  // Connects to nobody yet. Error: kInvalidArgument with the field, for a server address, PEM texts
  // or a token file that cannot be used. A server given by its address gets TCP keepalive and user
  // timeout, so that a silent one is found within 30 s; for one given by name only the idle
  // timeouts find it.
  static Result<std::unique_ptr<HttpApiClient>> Create(const ClusterAccess& access);

  // Requires: no call is running.
  ~HttpApiClient() override;

  // kInvalidArgument for a path that is no URI; an answer of more than 16 MiB is kUnavailable.
  Result<ApiResponse> Send(const ApiRequest& request) override;

  // The head must be there within 30 s, or idle_timeout if that is shorter.
  Result<ApiResponse> Stream(const std::string& path, Duration idle_timeout,
                             const std::stop_token& stop, const StreamSink& sink) override;
  Result<ApiResponse> Download(const std::string& path, Duration idle_timeout,
                               const std::stop_token& stop, const StreamSink& sink) override;

  // Any thread.
  [[nodiscard]] ApiClientStats stats() const;

 private:
  class Impl;
  explicit HttpApiClient(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace berth::kube
