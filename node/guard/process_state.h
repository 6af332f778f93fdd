// SPDX-License-Identifier: Apache-2.0
//
// What a process is doing, from /proc.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace berth::node {

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
