// SPDX-License-Identifier: Apache-2.0
//
// Eventually: waits for what other threads or processes bring about.
#pragma once

#include <chrono>
#include <thread>

namespace berth::test {

// Whether the condition holds before the limit is over.
template <class Condition>
bool Eventually(Condition condition, std::chrono::seconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace berth::test
