// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/line_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace berth {
namespace {

constexpr Duration kFarewell = std::chrono::seconds(1);
constexpr int kPollMs = 50;

// What a pipe takes at once when poll reports it writable (POSIX' PIPE_BUF). The descriptor is not
// made non-blocking, because the parent process shares it.
constexpr std::size_t kAtOnce = 4096;

// Writes some of the text if there is room soon, and removes it; false if the reader is gone.
bool WriteSome(int descriptor, std::string_view& text) {
  pollfd room{descriptor, POLLOUT, 0};
  if (poll(&room, 1, kPollMs) <= 0) return true;  // not yet
  const ssize_t written = write(descriptor, text.data(), std::min(text.size(), kAtOnce));
  if (written < 0) return errno == EINTR || errno == EAGAIN;
  text.remove_prefix(static_cast<std::size_t>(written));
  return true;
}

}  // namespace

bool WriteWithin(int descriptor, std::string_view text, Duration limit) {
  const Instant end = std::chrono::steady_clock::now() + limit;
  while (!text.empty() && std::chrono::steady_clock::now() < end) {
    if (!WriteSome(descriptor, text)) return false;
  }
  return text.empty();
}

LineWriter::LineWriter(int descriptor, std::size_t most_bytes)
    : descriptor_(descriptor), most_bytes_(most_bytes), thread_([this] { Run(); }) {}

LineWriter::~LineWriter() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    end_ = std::chrono::steady_clock::now() + kFarewell;
  }
  changed_.NotifyAll();
  thread_.join();
}

void LineWriter::Write(std::string line) {
  {
    const MutexLock lock(mutex_);
    if (held_bytes_ + line.size() > most_bytes_) {
      ++lost_;
      ++dropped_;
      return;
    }
    held_bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.NotifyOne();
}

std::uint64_t LineWriter::TakeLost() {
  const MutexLock lock(mutex_);
  return held_bytes_ > most_bytes_ / 2 ? 0 : std::exchange(lost_, 0);
}

std::uint64_t LineWriter::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

std::size_t LineWriter::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

bool LineWriter::MustEnd() const {
  const MutexLock lock(mutex_);
  return std::chrono::steady_clock::now() >= end_;
}

void LineWriter::Run() {
  while (true) {
    std::string line;
    {
      const MutexLock lock(mutex_);
      while (lines_.empty() && !ending_) changed_.Wait(mutex_);
      if (lines_.empty()) return;
      line = std::move(lines_.front());
      lines_.pop_front();
    }
    std::string_view rest = line;
    while (!rest.empty() && !MustEnd() && WriteSome(descriptor_, rest)) {
    }
    const MutexLock lock(mutex_);
    held_bytes_ -= line.size();
    if (std::chrono::steady_clock::now() >= end_) return;
  }
}

}  // namespace berth
