// SPDX-License-Identifier: Apache-2.0
//
// BareServer: the least a Beast server can do - read a request whole, write an answer that was
// ready before. The yardstick for what Berth adds.
#pragma once

#include <memory>
#include <string>

namespace berth::load {

// One thread, one connection at a time, on a free port of the loopback address.
class BareServer {
 public:
  BareServer();
  ~BareServer();  // call after the client has gone
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }

  // What the next request is answered with. Requires: no request is under way.
  void SetAnswer(const std::string* answer);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace berth::load
