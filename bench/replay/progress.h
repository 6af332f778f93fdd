// SPDX-License-Identifier: Apache-2.0
//
// A progress line on stderr with the time left; silent where stderr is not a terminal.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include "bench/replay/replay.h"

namespace berth::replay {

// `label` names the work. The line is erased at the end.
Progress TerminalProgress(std::string label);

// What several threads have done of `parts` replays or simulations, as one number. It outlives its
// parts.
class SharedProgress {
 public:
  SharedProgress(Progress progress, std::size_t parts)
      : progress_(std::move(progress)), all_(parts * kPerPart) {}

  // Of one part; for one thread.
  Progress Part();

 private:
  static constexpr std::size_t kPerPart = 100;

  void Add(std::size_t more);

  std::mutex mutex_;
  const Progress progress_;
  const std::size_t all_;
  std::size_t done_ = 0;
};

}  // namespace berth::replay
