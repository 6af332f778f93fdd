// SPDX-License-Identifier: Apache-2.0
//
// BareServer: the least a Beast server can do: read a whole request, write a prepared answer.
// Berth's cost is measured against it.
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

  // Sets the answer to the next request. Requires: no request is under way.
  void SetAnswer(const std::string* answer);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace berth::load
