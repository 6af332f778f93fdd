// SPDX-License-Identifier: Apache-2.0
#include "test/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>

#include "test/support/build_paths.h"

namespace berth::test {
namespace {

constexpr int kPatienceMs = 30'000;

void Require(bool success, const char* what) {
  if (!success) throw std::runtime_error(std::string("child process: ") + what);
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments) {
  const std::string path = BinDir() + "/" + program;
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);

  int out[2], err[2];
  Require(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  const int failed = posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_.pipe = out[0];
  err_.pipe = err[0];
  if (failed != 0) pid_ = -1;
  Require(failed == 0, "spawn");
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->pipe >= 0) close(stream->pipe);
  }
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void ChildProcess::LimitMemory(std::size_t more) const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  std::size_t pages = 0;
  Require(static_cast<bool>(statm >> pages), "statm");
  const rlim_t most = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{most, most};
  Require(prlimit(pid_, RLIMIT_AS, &limit, nullptr) == 0, "prlimit");
}

int ChildProcess::Wait() {
  while (Pump()) {
  }
  if (pid_ <= 0) return -1;
  if (out_.pipe >= 0 || err_.pipe >= 0) kill(pid_, SIGKILL);  // it hangs
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool ChildProcess::Await(Stream& stream, std::string_view text) {
  while (true) {
    const std::size_t at = stream.text.find(text);
    if (at != std::string::npos && stream.text.find('\n', at) != std::string::npos) return true;
    if (!Pump()) return false;
  }
}

bool ChildProcess::Pump() {
  if (out_.pipe < 0 && err_.pipe < 0) return false;
  std::array<pollfd, 2> pipes = {pollfd{out_.pipe, POLLIN, 0}, pollfd{err_.pipe, POLLIN, 0}};
  if (poll(pipes.data(), pipes.size(), kPatienceMs) <= 0) return false;
  for (Stream* const stream : {&out_, &err_}) {
    const pollfd& ready = pipes[stream == &out_ ? 0 : 1];
    if (ready.revents == 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t count = read(stream->pipe, bytes.data(), bytes.size());
    if (count > 0) {
      stream->text.append(bytes.data(), static_cast<std::size_t>(count));
    } else {
      close(stream->pipe);
      stream->pipe = -1;
    }
  }
  return true;
}

Outcome RunProgram(const std::string& program, const std::vector<std::string>& arguments) {
  ChildProcess process(program, arguments);
  const int code = process.Wait();
  return {code, process.out(), process.err()};
}

}  // namespace berth::test
