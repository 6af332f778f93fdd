// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/end_page.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/replay/session.h"
#include "scoring/registry.h"

namespace berth::replay::end_page_test {
namespace {

TEST(EndPage, ShowsTheClusterAsTheReplayLeavesItAndWhatFoundNoPlace) {
  Workload workload;
  workload.name = "test";
  workload.nodes = {{"n1", 64'000, 262'144, 4, "A100"}};
  TraceTask three;
  three.name = "three";
  three.cpu_milli = 1000;
  three.memory_mib = 1024;
  three.gpus = 3;
  three.gpu_milli = 1000;
  TraceTask two = three;
  two.name = "two";
  two.gpus = 2;
  workload.tasks = {three, two};
  const ProfileSpec spec = *FindBuiltinProfile("best-fit");
  PodStarts starts;
  std::shared_ptr<const Snapshot> end;
  SessionOptions options;
  options.policy = {spec.name, spec};
  options.starts = &starts;
  options.end = &end;
  const Arrivals arrivals{{0, 1}, {0}};
  ASSERT_TRUE(RunSession(workload, arrivals, options, {}));
  const auto left = PodsLeft(workload.tasks, arrivals, starts);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].pod.pod->shape.gpu_count(), 2);
  const std::string page = EndPage("end of test", "1.2.3", *end, left);
  EXPECT_NE(page.find("\"title\":\"end of test\""), std::string::npos);
  EXPECT_NE(page.find("\"cells\":\"###.\""), std::string::npos);
  EXPECT_NE(page.find("\"asks\":\"2 GPUs\""), std::string::npos);
  EXPECT_NE(page.find("<!doctype html>"), std::string::npos);
}

TEST(EndPage, APageWithDataNeedsNoServerAndEscapesTheData) {
  const std::string page = PageWith(R"({"title":"</script><script>alert(1)</script>"})");
  EXPECT_EQ(page.find("page.css"), std::string::npos);
  EXPECT_EQ(page.find("src=\"page.js\""), std::string::npos);
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  EXPECT_NE(page.find(R"({"title":"\u003c/script>\u003cscript>alert(1)\u003c/script>"})"),
            std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

}  // namespace
}  // namespace berth::replay::end_page_test
