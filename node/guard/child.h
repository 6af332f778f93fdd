// SPDX-License-Identifier: Apache-2.0
//
// Child: another process of this program, with a time by which it must have ended.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace berth::node {

// One thread.
class Child {
 public:
  Child() = default;
  ~Child();  // kills it, and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // This program with these arguments. It gets SIGTERM when we end, and inherits the descriptor;
  // -1: none. False where no process can be had. Requires: !running().
  bool Start(std::vector<std::string> arguments, Duration limit, int descriptor = -1);

  void Signal(int signal) const;

  // Looks whether it has ended, and kills it where its time is over. True once, after its end.
  bool Ended();
  // It is stopped by a signal.
  [[nodiscard]] bool stopped() const { return stopped_; }

  [[nodiscard]] bool running() const { return process_ > 0; }
  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] Instant started() const { return started_; }
  // "exit 1", "signal 9"
  [[nodiscard]] const std::string& outcome() const { return outcome_; }

 private:
  pid_t process_ = 0;
  bool stopped_ = false;
  Instant started_{};
  Instant end_{};
  std::string outcome_;
};

}  // namespace berth::node
