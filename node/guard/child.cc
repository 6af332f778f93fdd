// SPDX-License-Identifier: Apache-2.0
#include "node/guard/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace berth::node {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

// In the new process, which has this thread alone.
[[noreturn]] void Become(char* const* arguments, pid_t parent, int descriptor) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (descriptor >= 0) fcntl(descriptor, F_SETFD, 0);
  execv(kThisProgram, arguments);
  _exit(1);
}

}  // namespace

Child::~Child() {
  if (!running()) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Child::Start(std::vector<std::string> arguments, Duration limit, int descriptor) {
  arguments.insert(arguments.begin(), "berth-node");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) Become(pointers.data(), parent, descriptor);
  if (process < 0) return false;
  process_ = process;
  stopped_ = false;
  started_ = Instant::clock::now();
  end_ = limit == Duration::max() ? Instant::max() : started_ + limit;
  return true;
}

void Child::Signal(int signal) const {
  if (running()) kill(process_, signal);
}

bool Child::Ended() {
  if (!running()) return false;
  int status = 0;
  const pid_t found = waitpid(process_, &status, WNOHANG | WUNTRACED | WCONTINUED);
  if (found == process_ && (WIFEXITED(status) || WIFSIGNALED(status))) {
    outcome_ = WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                                 : "signal " + std::to_string(WTERMSIG(status));
    process_ = 0;
    return true;
  }
  if (found == process_) stopped_ = WIFSTOPPED(status);
  if (Instant::clock::now() >= end_) Signal(SIGKILL);
  return false;
}

}  // namespace berth::node
