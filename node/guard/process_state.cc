// SPDX-License-Identifier: Apache-2.0
#include "node/guard/process_state.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace berth::node {

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
