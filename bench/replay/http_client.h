// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: one keep-alive connection that posts and waits, as kube-scheduler's scheduling loop
// does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::replay {

// Not thread-safe.
class HttpClient {
 public:
  // `address` is HOST:PORT. Error: kUnavailable.
  static Result<HttpClient> Connect(const std::string& address);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  // The body of the answer. Error: kUnavailable when the exchange fails or the status is not 200.
  Result<std::string> Post(std::string_view path, const std::string& body);
  Result<std::string> Get(std::string_view path);

 private:
  class Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::replay
