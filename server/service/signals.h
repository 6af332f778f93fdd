// SPDX-License-Identifier: Apache-2.0
//
// Signals: takes the process' signals from a set that every thread blocks, so that no handler runs
// anywhere. To be made before the first thread.
#pragma once

#include <csignal>
#include <exception>
#include <functional>

#include "base/check.h"

namespace berth {

class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) sigaddset(&set_, signal);
    BERTH_CHECK(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
    // Each of these would end the process without a drain.
    for (const int signal : {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
                             SIGXFSZ, SIGSTKFLT}) {
      std::signal(signal, SIG_IGN);
    }
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) std::signal(signal, SIG_IGN);
  }

  // Returns at SIGTERM, SIGINT or SIGQUIT. SIGHUP asks a daemon to look at its configuration again.
  void AwaitStop(const std::function<void()>& on_hangup) const {
    while (true) {
      const int signal = sigwaitinfo(&set_, nullptr);
      if (signal == SIGTERM || signal == SIGINT || signal == SIGQUIT) return;
      if (signal != SIGHUP) continue;
      try {
        on_hangup();
      } catch (const std::exception&) {  // out of memory: who sent it may send it again
      }
    }
  }

 private:
  sigset_t set_{};
};

}  // namespace berth
