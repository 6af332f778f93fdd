// SPDX-License-Identifier: Apache-2.0
//
// Heartbeat: a page of memory that guard and worker share. The worker writes, the guard reads.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace berth::node {

// Any thread may call it.
class Heartbeat {
 public:
  // The guard's: new memory. Error: kUnavailable.
  static Result<Heartbeat> Create();
  // The worker's: that of the guard, by its file descriptor. Error: kInvalidArgument.
  static Result<Heartbeat> Join(int descriptor);
  ~Heartbeat();
  Heartbeat(Heartbeat&& other) noexcept;

  void Beat();
  void Reset();  // no beat yet
  // Time since the last beat; nullopt before the first.
  [[nodiscard]] std::optional<Duration> Age() const;

  // Whether the kubelet keeps a plugin while another one registers for its resource (Kubernetes
  // 1.37): then the plugin can be handed back before the worker ends.
  void SetKubeletKeepsBoth(bool keeps);
  [[nodiscard]] bool KubeletKeepsBoth() const;

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  struct Page {
    std::atomic<std::int64_t> last_ns;  // of the steady clock, the same in all processes; 0: none
    std::atomic<std::int32_t> keeps_both;
  };
  static Result<Heartbeat> Map(int descriptor);
  Heartbeat(int descriptor, Page* page) : descriptor_(descriptor), page_(page) {}

  int descriptor_;
  Page* page_;
};

// Giving back the pages of programs and libraries that were used at the start only. They stay in
// the page cache: one that is used again costs a short fault.

struct MappedRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  friend bool operator==(const MappedRange&, const MappedRange&) = default;
};

// The ranges of a text as in /proc/self/smaps that are read from files and were never written:
// dropping others would lose what was written, such as relocated addresses.
std::vector<MappedRange> CleanFileRanges(std::string_view smaps);

// Drops them from this process. Any thread.
void TrimResident();

// What a process is doing, from /proc.
enum class ProcessState {
  kGone,
  kStopped,   // by a signal or a debugger
  kBusy,      // a thread runs, or waits for a processor or a disk
  kSleeping,  // all threads wait for something else
};

ProcessState StateOf(pid_t process);

// The state's letter in the text of /proc/PID/stat; '\0': none. A program's name may have any
// bytes.
char StateLetter(std::string_view stat);

}  // namespace berth::node
