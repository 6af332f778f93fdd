// SPDX-License-Identifier: Apache-2.0
#include "node/guard/resident.h"

#include <sys/mman.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace berth::node {

namespace {

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
