// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/pod_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/replay/session.h"

namespace berth::replay::pod_table_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

const std::vector<TraceTask> kPairAndHalf = {{"a, b", 1000, 1, 2, 1000, ""},
                                             {"half", 1000, 1, 1, 500, ""}};
const std::vector<TraceNode> kOneNode = {{"n.1", 64'000, 1024, 2, "T4"}};

TEST(StartOf, HasTheNodeOfTheTraceAndTheGpus) {
  const PodStart start = StartOf({"07.n.1", 0, 0, {{2}, {5, 300}}}, minutes(1));
  EXPECT_EQ(start.node, "n.1");
  EXPECT_EQ(start.gpus, (std::vector<int>{2, 5}));
  EXPECT_EQ(start.at, minutes(1));
}

TEST(PodRows, HaveAColumnForEveryFieldOfTheHead) {
  const std::string rows = PodRows("p", kPairAndHalf, Arrivals{{1, 1}, {0}}, {{"n", {0}}, {}});
  EXPECT_EQ(rows,
            "p,half-0,half,1,500,n,0,placed,,,,0,0\n"
            "p,half-1,half,1,500,,,refused,,,,0,0\n");
  const auto commas = [](const std::string& line) { return std::ranges::count(line, ','); };
  EXPECT_EQ(commas(PodTableHead()), commas(rows.substr(0, rows.find('\n'))));
}

// Two GPUs, first fit, two hours: one pod is there from the start and ends, one waits for it and
// runs at the end, and the last one is still waiting then.
TEST(PodRows, TellWhatBecameOfEveryPodAtTheHorizon) {
  const Stream stream{
      {{0, Millis(0), hours(1)}, {1, milliseconds(1500), hours(1)}, {0, minutes(90), hours(1)}},
      hours(2) - milliseconds(1),
      1};
  PodStarts starts;
  const auto result = RunTimedSession({"test", kOneNode, kPairAndHalf}, {{}, {0}}, stream,
                                      PolicyNamed("first-fit").value(), 1, {}, 0, &starts);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(PodRows("first-fit", kPairAndHalf, stream, starts),
            "first-fit,\"a, b-0\",\"a, b\",2,1000,n.1,0|1,ended,0.000,0.000,0.000,0,1\n"
            "first-fit,half-1,half,1,500,n.1,0,running,1.500,3600.000,3598.500,0,0\n"
            "first-fit,\"a, b-2\",\"a, b\",2,1000,,,waiting,5400.000,,1799.999,1,0\n");
}

}  // namespace
}  // namespace berth::replay::pod_table_test
