// SPDX-License-Identifier: Apache-2.0
//
// HttpClient: one keep-alive connection with blocking requests, as in kube-scheduler's scheduling
// loop. It has no TLS and no deadlines: it is for measurements.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::http {

// Not thread-safe.
class HttpClient {
 public:
  // `address` is HOST:PORT. Error: kUnavailable.
  static Result<HttpClient> Connect(const std::string& address);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  struct Answer {
    int status = 0;
    std::string body;
  };
  // Error: kUnavailable when the exchange fails; any status is an answer.
  Result<Answer> Ask(const char* method, std::string_view path, const std::string& body = "");

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::http
