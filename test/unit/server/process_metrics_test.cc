// SPDX-License-Identifier: Apache-2.0
#include "server/pages/metrics_parts.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/metrics_lines.h"

namespace berth::test::process_metrics_test {
namespace {

double Sample(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name << "\n" << text;
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size() + 2);
}

TEST(ProcessMetrics, StartTimeIsNotLongAgoAndNotInTheFuture) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double started = Sample(Written(AddProcessMetrics), "process_start_time_seconds");
  EXPECT_LE(started, now + 2) << "the kernel's clock ticks may run ahead a little";
  EXPECT_GE(started, now - 3600);
}

TEST(ProcessMetrics, FollowWhatTheProcessUses) {
  const std::string before = Written(AddProcessMetrics);
  const std::ifstream one("/proc/self/stat"), two("/proc/self/stat");
  std::vector<char> memory(std::size_t{64} << 20, 'x');
  const std::string after = Written(AddProcessMetrics);
  EXPECT_EQ(Sample(after, "process_open_fds"), Sample(before, "process_open_fds") + 2);
  EXPECT_GE(Sample(after, "process_resident_memory_bytes"),
            Sample(before, "process_resident_memory_bytes") + 32e6 + memory.back() - 'x');
  EXPECT_GE(Sample(after, "process_virtual_memory_bytes"),
            Sample(after, "process_resident_memory_bytes"));
  EXPECT_GE(Sample(after, "process_max_fds"), Sample(after, "process_open_fds"));
  EXPECT_GE(Sample(after, "process_cpu_seconds_total"),
            Sample(before, "process_cpu_seconds_total"));
}

}  // namespace
}  // namespace berth::test::process_metrics_test
