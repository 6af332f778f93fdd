// SPDX-License-Identifier: Apache-2.0
//
// Small parts of `berth serve`: its signals, the memory that it holds, its log of advice.
#pragma once

#include <csignal>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "scoring/mig/repartition_report.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace berth {

// Signals: takes the process' signals from a set that every thread blocks, so that no handler runs
// anywhere. To be made before the first thread.
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

// The memory that clients can make Berth hold, by store, each with its bound (SECURITY.md).
struct HeldStore {
  std::string_view name;  // of a label
  std::size_t bytes = 0;
  std::size_t limit = 0;
};

void AddHeldMemory(std::span<const HeldStore> stores, MetricsText& text);

// Makes the allocator return large blocks to the system when they are freed, and keep fewer heaps
// than threads, all of them made now. Call it before other threads exist. Throws what std::thread
// throws.
void BoundAllocator();

// Returns to the system what is free, once: after something that takes much memory for a moment.
void ReturnFreedMemory();

// Returns freed memory to the system after much was held; the allocator alone would keep it. One
// thread.
class MemoryTrim {
 public:
  // held_bytes: what is held now. True if memory went back to the system.
  bool Look(std::size_t held_bytes);

 private:
  std::size_t peak_ = 0;  // since it last did
};

// AdviceLog: logs how nodes had better be partitioned for the pods that wait. Advice is logged only
// when a node's recommended config changes: the number of pods changes all the time.

// One thread at a time.
class AdviceLog {
 public:
  explicit AdviceLog(Log& log) : log_(log) {}

  [[nodiscard]] bool IsDue(Instant now) const { return now >= next_; }
  // The advice of this moment; none where this process does not lead.
  void Write(const std::vector<NodeAdvice>& advice, Instant now);

 private:
  Log& log_;
  Instant next_{};
  std::map<std::string, std::string> config_by_node_;  // as logged last
};

}  // namespace berth
