// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/gang_history.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::ended_pods_test {
namespace {

class EndedPodSinkTest : public testing::Test {
 protected:
  static Json Ended(const std::string& uid, int minutes) {
    Json pod = PodWithGpus(uid, 2);
    pod["metadata"]["name"] = "train-" + uid;
    pod["spec"]["restartPolicy"] = "Never";
    pod["spec"]["nodeName"] = "n";
    const std::string end = "2026-11-27T10:" + std::to_string(minutes) + ":00Z";
    pod["status"] = {
        {"phase", "Succeeded"},
        {"startTime", "2026-11-27T10:00:00Z"},
        {"containerStatuses", Json::array({{{"state", {{"terminated", {{"finishedAt", end}}}}}}})}};
    return pod;
  }
  void Show(const Json& pod) { sink_.Changed(Padded(pod.dump())); }
  // Of the next one.
  [[nodiscard]] std::optional<Duration> Learned() const {
    const auto next = wire::DecodeObservedPod(Padded(Ended("99", 10).dump()), rules_);
    return next ? table_.Newest()->Of(next->pod, {}) : std::nullopt;
  }

  wire::PodRules rules_{AllDialects(), DefaultConfig().resources};
  RunTimeTable table_;
  kube::EndedPodSink sink_{table_, rules_};
};

TEST_F(EndedPodSinkTest, LearnsOfPodsThatEndAndOfThoseThatHadEndedBefore) {
  sink_.ListBegins();
  for (int i = 0; i < 11; ++i) sink_.Listed(Padded(Ended(std::to_string(i), 40 + i).dump()));
  sink_.ListEnds();
  for (int i = 0; i < 11; ++i) Show(Ended(std::to_string(i), 40 + i));
  EXPECT_EQ(Learned(), std::nullopt) << "eleven are too few, as often as they are shown";
  Show(Ended("11", 51));
  EXPECT_EQ(Learned(), std::chrono::minutes(50));
  sink_.Deleted(Padded(Ended("11", 51).dump()));
  EXPECT_EQ(Learned(), std::chrono::minutes(50));
}

TEST_F(EndedPodSinkTest, WhatWasCutShortOrMakesNoSenseSaysNothing) {
  for (int i = 0; i < 10; ++i) {
    Json told = Ended("t" + std::to_string(i), 40);
    told["metadata"]["deletionTimestamp"] = "2026-11-27T10:39:00Z";
    Show(told);
    Json failed = Ended("f" + std::to_string(i), 40);
    failed["status"]["phase"] = "Failed";
    Show(failed);
    Json running = Ended("r" + std::to_string(i), 40);
    running["status"]["phase"] = "Running";
    Show(running);
    Json service = Ended("s" + std::to_string(i), 40);
    service["spec"]["restartPolicy"] = "Always";
    Show(service);
    Json back = Ended("b" + std::to_string(i), 40);
    back["status"]["startTime"] = "2026-11-27T12:00:00Z";
    Show(back);
    Json never = Ended("n" + std::to_string(i), 40);
    never["status"].erase("startTime");
    Show(never);
  }
  sink_.Changed(Padded("{}"));
  sink_.Changed(Padded("no json"));
  EXPECT_EQ(table_.kinds(), 0u);
}

}  // namespace
}  // namespace berth::test::ended_pods_test
