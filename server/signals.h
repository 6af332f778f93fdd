// SPDX-License-Identifier: Apache-2.0
//
// Signals: takes the process' signals from a set that every thread blocks, so that no handler runs
// anywhere. To be made before the first thread.
#pragma once

#include <csignal>
#include <functional>

#include "base/check.h"

namespace berth {

class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
    BERTH_CHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
    // Each of these would end the process without a drain.
    for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  }

  // Returns at SIGTERM or SIGINT. SIGHUP asks a daemon to look at its configuration again.
  void AwaitStop(const std::function<void()>& on_hangup) const {
    for (int signal = 0; signal != SIGTERM && signal != SIGINT;) {
      signal = sigwaitinfo(&set_, nullptr);
      if (signal == SIGHUP) on_hangup();
    }
  }

 private:
  sigset_t set_{};
};

}  // namespace berth
