// SPDX-License-Identifier: Apache-2.0
//
// A plain cluster with the profile power-saving: eight nodes with two models of GPUs, and nothing
// but their names to tell what they draw.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "bench/replay/policy.h"
#include "bench/replay/session.h"

namespace berth::replay::power_saving_test {
namespace {

// Four nodes with four T4 each, 60 W more when in use, and four with four A100, 350 W more.
Workload EightNodes(const std::string& frugal, const std::string& strong) {
  Workload workload{"plain", {}, {}};
  for (int i = 0; i < 8; ++i) {
    workload.nodes.push_back(
        {"n" + std::to_string(i), 64'000, 262'144, 4, i % 2 == 0 ? strong : frugal});
  }
  workload.tasks = {{"any", 4000, 8192, 1, 1000, ""},
                    {"half", 2000, 4096, 1, 500, ""},
                    {"strong", 4000, 8192, 1, 1000, strong},
                    {"whole-node", 4000, 8192, 4, 1000, ""}};
  return workload;
}
constexpr std::size_t kAny = 0, kHalf = 1, kStrong = 2, kWholeNode = 3;

ReplayResult Replay(const Workload& workload, std::vector<std::size_t> pods,
                    const std::string& policy) {
  Arrivals arrivals{std::move(pods), std::vector<std::size_t>(workload.nodes.size())};
  std::iota(arrivals.node_rank.begin(), arrivals.node_rank.end(), std::size_t{0});
  SessionOptions options;
  options.policy = PolicyNamed(policy).value();
  return RunSession(workload, arrivals, options, {}).value().replay;
}

std::vector<std::size_t> Repeated(std::size_t count, std::size_t task) {
  return std::vector<std::size_t>(count, task);
}

const std::string kT4 = "Tesla-T4", kA100 = "NVIDIA-A100-SXM4-80GB";

TEST(PowerSaving, PodsThatRunAnywhereStartNoGpuThatDrawsMore) {
  // All idle: 16 * 10 + 16 * 50 = 960 W.
  EXPECT_EQ(Replay(EightNodes(kT4, kA100), Repeated(16, kAny), "power-saving").watts[50],
            960 + 16 * 60);
  EXPECT_EQ(Replay(EightNodes(kT4, kA100), Repeated(32, kHalf), "power-saving").watts[50],
            960 + 16 * 60)
      << "two halves on each";
  EXPECT_EQ(Replay(EightNodes(kT4, kA100), Repeated(4, kWholeNode), "power-saving").watts[50],
            960 + 16 * 60);
}

TEST(PowerSaving, NobodyIsLeftWithoutAGpu) {
  // What can run on any GPU comes first, and what needs the strong ones last.
  std::vector<std::size_t> pods = Repeated(16, kAny);
  const std::vector<std::size_t> strong = Repeated(16, kStrong);
  pods.insert(pods.end(), strong.begin(), strong.end());
  const ReplayResult result = Replay(EightNodes(kT4, kA100), pods, "power-saving");
  EXPECT_EQ(result.refused, 0);
  EXPECT_EQ(result.watts[100], 16 * 70 + 16 * 400);
}

TEST(PowerSaving, WithoutFiguresItPlacesAsTheDefaultProfileDoes) {
  const Workload unknown = EightNodes("Frugal-1", "Strong-1");
  const std::vector<std::size_t> pods = {kHalf, kAny, kHalf, kStrong, kWholeNode, kHalf, kAny};
  PodStarts saving, plain;
  const Arrivals arrivals{pods, {0, 1, 2, 3, 4, 5, 6, 7}};
  for (const auto& [policy, starts] :
       {std::pair<std::string, PodStarts*>{"power-saving", &saving}, {"expected-waste", &plain}}) {
    SessionOptions options;
    options.policy = PolicyNamed(policy).value();
    options.starts = starts;
    ASSERT_TRUE(RunSession(unknown, arrivals, options, {}).has_value());
  }
  ASSERT_EQ(saving.size(), pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) EXPECT_EQ(saving[i].node, plain[i].node) << i;
}

}  // namespace
}  // namespace berth::replay::power_saving_test
