// SPDX-License-Identifier: Apache-2.0
//
// The output of a child process that may hang, crash or print without end.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace berth::node {

struct ChildLimits {
  Duration time = std::chrono::seconds(10);  // then it is killed
  std::size_t bytes = std::size_t{256} << 10;
  // Asked every 50 ms: true kills it at once.
  std::function<bool()> give_up = [] { return false; };
};

// Not for concurrent use.
class ChildRunner {
 public:
  // Starts the program (argv[0], a path) with its arguments and this process's environment, and
  // returns what it printed on standard output; standard error stays ours. Error: kUnavailable if
  // it cannot be started, ended by a signal or with a status other than 0, was given up, or one
  // that was killed before has not ended yet; kDeadline; kInvalidArgument for too much output.
  Result<std::string> Output(const std::vector<std::string>& argv, const ChildLimits& limits);

 private:
  // A process that waits inside the kernel does not end when it is killed. There is one at most.
  std::optional<int> stuck_;
};

}  // namespace berth::node
