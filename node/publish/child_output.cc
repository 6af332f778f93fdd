// SPDX-License-Identifier: Apache-2.0
#include "node/publish/child_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/cleanup.h"

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kLook(50);
constexpr Duration kMostForItsEnd = std::chrono::seconds(1);

Result<pid_t> Start(const std::vector<std::string>& argv, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return child;
  return Fail(Errc::kUnavailable, argv[0] + ": cannot be started: " + std::strerror(failed));
}

// Reads until the output ends.
Status ReadAll(int input, const ChildLimits& limits, Instant end, std::string& text) {
  while (true) {
    if (limits.give_up()) return Fail(Errc::kUnavailable, "given up");
    if (std::chrono::steady_clock::now() >= end) return Fail(Errc::kDeadline, "took too long");
    pollfd look{input, POLLIN, 0};
    if (poll(&look, 1, static_cast<int>(kLook.count())) <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = read(input, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() <= limits.bytes) continue;
    return Invalid("want at most " + std::to_string(limits.bytes) + " bytes of output, got more");
  }
}

// Its status as of waitpid; nullopt where it does not end.
std::optional<int> Reap(pid_t child, Instant end) {
  int status = 0;
  while (true) {
    const pid_t got = waitpid(child, &status, WNOHANG);
    if (got == child) return status;
    if (got < 0 && errno != EINTR) return 0;  // somebody else has waited for it
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Status EndOf(int status) {
  if (WIFSIGNALED(status)) {
    return Fail(Errc::kUnavailable, "ended by signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return Fail(Errc::kUnavailable, "ended with status " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace

Result<std::string> ChildRunner::Output(const std::vector<std::string>& argv,
                                        const ChildLimits& limits) {
  if (argv.empty()) return Invalid("want a program to start, got none");
  const Instant end = std::chrono::steady_clock::now() + limits.time;
  if (stuck_ && !Reap(*stuck_, Instant{})) {
    return Fail(Errc::kUnavailable,
                argv[0] + ": process " + std::to_string(*stuck_) + " was killed and has not ended");
  }
  stuck_.reset();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(Errc::kUnavailable, std::string("no pipe: ") + std::strerror(errno));
  }
  const Cleanup close_input([&] { close(ends[0]); });
  const auto child = Start(argv, ends[1]);
  close(ends[1]);
  if (!child) return tl::unexpected(child.error());
  std::string text;
  Status read = ReadAll(ends[0], limits, end, text);
  std::optional<int> status;
  if (read) status = Reap(*child, end);
  if (!status) {
    kill(*child, SIGKILL);
    if (read) read = Fail(Errc::kDeadline, "closed its output and did not end");
    if (!Reap(*child, std::chrono::steady_clock::now() + kMostForItsEnd)) stuck_ = *child;
    return tl::unexpected(std::move(read).error().Within(argv[0]));
  }
  if (auto ended = EndOf(*status); !ended) {
    return tl::unexpected(std::move(ended).error().Within(argv[0]));
  }
  return text;
}

}  // namespace berth::node
