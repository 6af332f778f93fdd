// SPDX-License-Identifier: Apache-2.0
//
// Giving back the pages of programs and libraries that were used at the start only. They stay in
// the page cache: one that is used again costs a short fault.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <string_view>
#include <vector>

namespace berth::node {

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
