// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_whys.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/metrics_lines.h"

namespace berth::test::waiting_classes_test {
namespace {

constexpr WallTime kNow{std::chrono::hours(500'000)};

WaitingPod Waiting(const APod& pod, std::optional<Duration> age, bool gated = false) {
  WaitingPod waiting{.pod = std::make_shared<const PodRequest>(pod.Request()),
                     .held_back = gated ? "scheduling gates hold it back" : ""};
  if (age) waiting.created = kNow - std::chrono::duration_cast<WallTime::duration>(*age);
  return waiting;
}

std::vector<WaitingPod> AFewPods() {
  return {Waiting(APod("a").Whole(8), std::chrono::seconds(5)),
          Waiting(APod("b").Whole(8), std::chrono::hours(3)),
          Waiting(APod("c").Whole(8), std::chrono::hours(9), true),
          Waiting(APod("d").Whole(3), std::chrono::minutes(1)),
          Waiting(APod("e").Share(500), std::nullopt),
          Waiting(APod("f").Mig("1g.5gb"), std::chrono::minutes(59)),
          Waiting(APod("g"), std::chrono::hours(1))};
}

TEST(WaitingClasses, AreOrderedBySizeWithoutGatedOrGpulessPods) {
  const auto classes = WaitingClasses(AFewPods(), kNow);
  std::vector<std::string> told;
  for (const wire::WaitingClass& kind : classes) {
    const auto oldest = kind.oldest.value_or(Duration(-1));
    told.push_back(
        kind.asks + ": " + std::to_string(kind.pods) + ", " +
        std::to_string(std::chrono::duration_cast<std::chrono::minutes>(oldest).count()));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"3 GPUs: 1, 1", "8 GPUs: 2, 180", "share: 1, 0",
                                            "MIG: 1, 59"}));
  EXPECT_FALSE(classes[2].oldest) << "its age is not known";
}

TEST(WaitingClasses, PodsThatMustBeChangedWaitForThat) {
  PodRequest refused = APod("a").Request();
  refused.refusal = "pod asks for MIG devices and for GPUs: want one of the two";
  const std::vector<WaitingPod> pods = {{.pod = std::make_shared<const PodRequest>(refused)}};
  const auto classes = WaitingClasses(pods, kNow);
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].asks, "must be changed");
  EXPECT_EQ(classes[0].pods, 1);
}

TEST(WaitingMetrics, CountPodsByWhatTheyAskForAndByAge) {
  const std::string text = Written(AddWaitingMetrics, AFewPods(), kNow);
  ExpectLines(text, {"berth_waiting_gpu_pods{asks=\"8 GPUs\",age=\"under 1m\"} 1",
                     "berth_waiting_gpu_pods{asks=\"8 GPUs\",age=\"under 10m\"} 0",
                     "berth_waiting_gpu_pods{asks=\"8 GPUs\",age=\"1h or more\"} 1",
                     "berth_waiting_gpu_pods{asks=\"3 GPUs\",age=\"under 10m\"} 1",
                     "berth_waiting_gpu_pods{asks=\"share\",age=\"under 1m\"} 1",
                     "berth_waiting_gpu_pods{asks=\"MIG\",age=\"under 1h\"} 1",
                     "berth_waiting_gpu_pods{asks=\"1 GPU\",age=\"under 1m\"} 0",
                     "berth_waiting_gpu_pod_oldest_seconds{asks=\"8 GPUs\"} 10800",
                     "berth_waiting_gpu_pod_oldest_seconds{asks=\"1 GPU\"} 0"});
}

TEST(WaitingMetrics, ClockOfTheApiServerThatIsAheadMakesNoAgeNegative) {
  const std::vector<WaitingPod> pods = {Waiting(APod("a").Whole(8), -std::chrono::minutes(20))};
  ExpectLines(Written(AddWaitingMetrics, pods, kNow),
              {"berth_waiting_gpu_pod_oldest_seconds{asks=\"8 GPUs\"} 0",
               "berth_waiting_gpu_pods{asks=\"8 GPUs\",age=\"under 1m\"} 1"});
}

TEST(WaitingMetrics, AreThereWhereNoPodWaits) {
  const std::string text = Written(AddWaitingMetrics, std::vector<WaitingPod>(), kNow);
  EXPECT_NE(text.find("berth_waiting_gpu_pods{asks=\"4 GPUs\",age=\"1h or more\"} 0\n"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::test::waiting_classes_test
