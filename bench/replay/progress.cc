// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace berth::replay {

Progress TerminalProgress(std::string label) {
  using Stopwatch = std::chrono::steady_clock;
  if (isatty(STDERR_FILENO) == 0) return {};
  return [label = std::move(label), start = Stopwatch::now(), last = Stopwatch::time_point{}](
             std::size_t done, std::size_t all) mutable {
    const auto now = Stopwatch::now();
    if (done == all) {
      std::fputs("\r\033[K", stderr);
      return;
    }
    if (now - last < std::chrono::milliseconds(100)) return;
    last = now;
    const double spent = std::chrono::duration<double>(now - start).count();
    const double left = spent / static_cast<double>(done) * static_cast<double>(all - done);
    constexpr int kWidth = 30;
    const auto filled = static_cast<int>(kWidth * done / all);
    std::fprintf(stderr, "\r%-24s [%.*s%*s] %3zu %%  %.0f s left\033[K", label.c_str(), filled,
                 "##############################", kWidth - filled, "", 100 * done / all, left);
  };
}

Progress SharedProgress::Part() {
  return [this, told = std::size_t{0}](std::size_t done, std::size_t of) mutable {
    const std::size_t now = done * kPerPart / of;
    if (now == told) return;
    Add(now - told);
    told = now;
  };
}

void SharedProgress::Add(std::size_t more) {
  const std::lock_guard lock(mutex_);
  done_ += more;
  if (progress_) progress_(done_, all_);
}

}  // namespace berth::replay
