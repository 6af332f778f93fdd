// SPDX-License-Identifier: Apache-2.0
#include "node/guard/heartbeat.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace berth::node {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             Instant::clock::now().time_since_epoch())
      .count();
}

Error HeartbeatProblem(Errc code) {
  return {code, "heartbeat: " + std::generic_category().message(errno)};
}

// The first line of a range: "7f00-7f10 r-xp 00000000 08:01 1234   /lib/libc.so.6".
bool ParseRange(const std::string& line, MappedRange& range, bool& wanted) {
  unsigned long long begin = 0;
  unsigned long long end = 0;
  char rights[5] = {};
  unsigned long long inode = 0;
  const int read =
      std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*x:%*x %llu", &begin, &end, rights, &inode);
  if (read != 4) return false;
  range = {static_cast<std::uintptr_t>(begin), static_cast<std::uintptr_t>(end)};
  const std::string_view may(rights);
  wanted = inode != 0 && (may == "r-xp" || may == "r--p");
  return true;
}

}  // namespace

Result<Heartbeat> Heartbeat::Create() {
  const int descriptor = memfd_create("berth-heartbeat", 0);
  if (descriptor < 0 || ftruncate(descriptor, kPageBytes) != 0) {
    return tl::unexpected(HeartbeatProblem(Errc::kUnavailable));
  }
  return Map(descriptor);
}

Result<Heartbeat> Heartbeat::Join(int descriptor) { return Map(descriptor); }

Result<Heartbeat> Heartbeat::Map(int descriptor) {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) return tl::unexpected(HeartbeatProblem(Errc::kInvalidArgument));
  return Heartbeat(descriptor, static_cast<Page*>(page));
}

Heartbeat::Heartbeat(Heartbeat&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      page_(std::exchange(other.page_, nullptr)) {}

Heartbeat::~Heartbeat() {
  if (page_ == nullptr) return;
  munmap(page_, kPageBytes);
  close(descriptor_);
}

void Heartbeat::Beat() { page_->last_ns = NowNs(); }

void Heartbeat::Reset() { page_->last_ns = 0; }

std::optional<Duration> Heartbeat::Age() const {
  const std::int64_t last = page_->last_ns;
  if (last == 0) return std::nullopt;
  return std::chrono::nanoseconds(NowNs() - last);
}

void Heartbeat::SetKubeletKeepsBoth(bool keeps) { page_->keeps_both = keeps ? 1 : 0; }

bool Heartbeat::KubeletKeepsBoth() const { return page_->keeps_both == 1; }

std::vector<MappedRange> CleanFileRanges(std::string_view smaps) {
  constexpr std::string_view kWritten = "Anonymous:";
  std::istringstream lines{std::string(smaps)};
  std::vector<MappedRange> ranges;
  MappedRange range;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (ParseRange(line, range, wanted)) continue;
    if (!wanted || !line.starts_with(kWritten)) continue;
    int kib = -1;
    std::istringstream(line.substr(kWritten.size())) >> kib;
    if (kib == 0) ranges.push_back(range);
  }
  return ranges;
}

void TrimResident() {
  std::ifstream file("/proc/self/smaps");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const MappedRange& range : CleanFileRanges(text)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel writes addresses as numbers.
    madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, MADV_DONTNEED);
  }
}

char StateLetter(std::string_view stat) {
  const std::size_t end = stat.rfind(") ");
  return end == std::string_view::npos || end + 2 >= stat.size() ? '\0' : stat[end + 2];
}

ProcessState StateOf(pid_t process) {
  std::error_code code;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  bool any = false;
  bool busy = false;
  for (std::filesystem::directory_iterator task(tasks, code), end; !code && task != end;
       task.increment(code)) {
    std::ifstream file(task->path() / "stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const char state = StateLetter(text);
    if (state == 'T' || state == 't') return ProcessState::kStopped;
    any = any || (state != '\0' && state != 'Z' && state != 'X');
    busy = busy || state == 'R' || state == 'D';
  }
  if (!any) return ProcessState::kGone;
  return busy ? ProcessState::kBusy : ProcessState::kSleeping;
}

}  // namespace berth::node
