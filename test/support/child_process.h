// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: a program of this build, run as a process of its own. Every wait ends after 30 s at
// the latest; the process does not outlive the object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace berth::test {

// Not thread-safe.
class ChildProcess {
 public:
  // Starts BinDir()/PROGRAM (build_paths.h) with these arguments.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // True as soon as its stdout / stderr holds a line that contains the text; false if it ends (or
  // stays silent) without one.
  bool AwaitOut(std::string_view text) { return Await(out_, text); }
  bool AwaitErr(std::string_view text) { return Await(err_, text); }

  void Signal(int signal) const;
  // From now on it gets at most so many bytes of addresses beside those that it has (RLIMIT_AS).
  void LimitMemory(std::size_t more) const;

  // Waits for its end: the exit code, or -1 if a signal ended it.
  int Wait();

  // What it has written so far; all of it after Wait.
  [[nodiscard]] const std::string& out() const { return out_.text; }
  [[nodiscard]] const std::string& err() const { return err_.text; }

 private:
  struct Stream {
    int pipe = -1;
    std::string text;
  };

  bool Await(Stream& stream, std::string_view text);
  // Reads what comes next; false once both are closed, or nothing came for too long.
  bool Pump();

  pid_t pid_ = -1;
  Stream out_, err_;
};

// What a program that ends by itself left behind.
struct Outcome {
  int code;  // as Wait
  std::string out, err;
};
Outcome RunProgram(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace berth::test
