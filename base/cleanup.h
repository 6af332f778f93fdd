// SPDX-License-Identifier: Apache-2.0
//
// Cleanup: calls a function when it goes out of scope, however that happens.
//
//   const Cleanup landed([&] { waiting_.erase(uid); });
#pragma once

#include <utility>

namespace berth {

template <class Function>
class [[nodiscard]] Cleanup {
 public:
  explicit Cleanup(Function function) : function_(std::move(function)) {}
  ~Cleanup() { function_(); }
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;

 private:
  Function function_;
};

}  // namespace berth
