// SPDX-License-Identifier: Apache-2.0
//
// ForEachInParallel: independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace berth::replay {

// Calls work(i) once for every i below `count`, in no particular order, from `threads` threads (one
// of them the caller's); returns when all are done. Work that writes only what belongs to its i
// needs no lock.
template <class Work>
void ForEachInParallel(std::size_t count, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < threads && t < count; ++t) others.emplace_back(loop);
  loop();
}

// As many as the machine has cores.
inline std::size_t AllCores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace berth::replay
