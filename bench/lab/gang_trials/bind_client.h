// SPDX-License-Identifier: Apache-2.0
//
// BindClient: POSTs of one address, as many at a time as are asked for, on one thread. As Go's
// client does, each takes a connection that is idle or opens another one, and is given up after
// httpTimeout.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"

namespace berth::gang_trials {

class BindClient {
 public:
  // ok: the status is 200; body: of the answer; "" and false where none came in time.
  using Done = std::function<void(bool ok, const std::string& body)>;

  // address: HOST:PORT.
  BindClient(const std::string& address, Duration timeout);
  // Gives up what waits, without a call.
  ~BindClient();
  BindClient(const BindClient&) = delete;
  BindClient& operator=(const BindClient&) = delete;

  // Any thread. `done` is called on the client's thread.
  void Post(const std::string& path, std::string body, Done done);

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::gang_trials
