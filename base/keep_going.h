// SPDX-License-Identifier: Apache-2.0
//
// KeepGoing: what a thread does for as long as the process runs. Our own code does not throw, but
// memory can run out anywhere, and an exception that leaves a thread ends the process.
#pragma once

#include <chrono>
#include <exception>
#include <thread>

namespace berth {

// Calls `work` until it returns. When it throws, on_exception is called and, after a pause in which
// memory may come free, `work` again: it must be able to begin in the middle.
template <class Work, class OnException>
void KeepGoing(Work work, OnException on_exception) {
  constexpr std::chrono::milliseconds kPause(100);
  while (true) {
    try {
      work();
      return;
    } catch (const std::exception&) {
      on_exception();
      std::this_thread::sleep_for(kPause);
    }
  }
}

template <class Work>
void KeepGoing(Work work) {
  KeepGoing(work, [] {});
}

}  // namespace berth
