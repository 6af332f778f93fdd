// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_needs.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_series_test {
namespace {

TEST(StemOf, IsTheNameWithoutWhatEachRunHasAnew) {
  EXPECT_EQ(StemOf("nightly-28374650"), "nightly");           // CronJob
  EXPECT_EQ(StemOf("train-x7k2p"), "train");                  // generateName
  EXPECT_EQ(StemOf("train-bcdfg"), "train");                  // the same
  EXPECT_EQ(StemOf("sweep-3"), "sweep");                      // numbered by hand
  EXPECT_EQ(StemOf("sweep_17.4"), "sweep");                   //
  EXPECT_EQ(StemOf("run-3f2a9c1d-0004"), "run");              // a hash and a number
  EXPECT_EQ(StemOf("exp0042"), "exp");                        //
  EXPECT_EQ(StemOf("llama-70b"), "llama-70b");                // a size
  EXPECT_EQ(StemOf("eval-h100-x7k2p"), "eval-h");             // as all of that GPU
  EXPECT_EQ(StemOf("train-bert-large"), "train-bert-large");  // words
  for (const char* const none : {"", "-", "12345", "7-8-9", "..."}) EXPECT_EQ(StemOf(none), "");
  EXPECT_EQ(StemOf("x7k2p9"), "x7k2p") << "it is all there is";
  EXPECT_EQ(StemOf(std::string(100'000, '1')), "");
  EXPECT_EQ(StemOf(std::string(100'000, '-') + "1"), "");
}

class PodSeriesTest : public testing::Test {
 protected:
  // A pod with a GPU, of a Job unless it says otherwise.
  static test::Json Pod(const std::string& controller) {
    test::Json pod = test::PodWithGpus("u", 1);
    pod["spec"]["restartPolicy"] = "Never";
    pod["metadata"]["ownerReferences"] = test::Json::array(
        {{{"controller", true}, {"kind", "Job"}, {"name", controller}, {"uid", "c"}}});
    return pod;
  }
  static ObservedPod Read(const test::Json& pod) {
    static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
    auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
    EXPECT_TRUE(observed);
    return observed ? *std::move(observed) : ObservedPod();
  }
  static std::uint64_t SeriesIn(const test::Json& pod) { return Read(pod).pod.series; }
};

TEST_F(PodSeriesTest, IsByTheControllerOrElseTheName) {
  const std::uint64_t nightly = SeriesIn(Pod("nightly-28374650"));
  EXPECT_NE(nightly, 0u);
  EXPECT_EQ(nightly, SeriesIn(Pod("nightly-28376090")));
  EXPECT_NE(nightly, SeriesIn(Pod("weekly-28374650")));
  test::Json workflow = Pod("nightly-28374650");
  workflow["metadata"]["ownerReferences"][0]["kind"] = "Workflow";
  EXPECT_NE(nightly, SeriesIn(workflow));
  test::Json alone = Pod("");
  alone["metadata"].erase("ownerReferences");
  alone["metadata"]["name"] = "sweep-3";
  test::Json next = alone;
  next["metadata"]["name"] = "sweep-4";
  EXPECT_EQ(SeriesIn(alone), SeriesIn(next));
  EXPECT_NE(SeriesIn(alone), SeriesIn(workflow));
}

TEST_F(PodSeriesTest, WhoDoesNotEndByItselfIsOfNone) {
  test::Json pod = Pod("web-x7k2p");
  pod["spec"]["restartPolicy"] = "Always";
  EXPECT_EQ(SeriesIn(pod), 0u);
  pod["spec"].erase("restartPolicy");
  EXPECT_EQ(SeriesIn(pod), 0u) << "that is Always";
  test::Json without = Pod("job");
  for (const char* list : {"limits", "requests"}) {
    without["spec"]["containers"][0]["resources"][list].erase("nvidia.com/gpu");
  }
  EXPECT_EQ(SeriesIn(without), 0u) << "it asks for no GPU";
}

TEST_F(PodSeriesTest, APodHasFinishedWhenTheLastOfItsContainersHas) {
  const auto ended = [](const char* at) {
    return test::Json{{"name", "c"}, {"state", {{"terminated", {{"finishedAt", at}}}}}};
  };
  test::Json pod = Pod("job");
  pod["spec"]["nodeName"] = "n";
  pod["status"] = {{"phase", "Succeeded"},
                   {"startTime", "2026-11-27T10:00:00Z"},
                   {"initContainerStatuses", test::Json::array({ended("2026-11-27T10:01:00Z")})},
                   {"containerStatuses", test::Json::array({ended("2026-11-27T12:30:00Z"),
                                                            ended("2026-11-27T11:00:00Z")})}};
  const ObservedPod whole = Read(pod);
  ASSERT_TRUE(whole.finished && whole.life.started);
  EXPECT_EQ(*whole.finished - *whole.life.started, std::chrono::minutes(150));
  test::Json told = pod;
  told["metadata"]["deletionTimestamp"] = "2026-11-27T12:29:00Z";
  EXPECT_FALSE(Read(told).finished) << "it was cut short";
  test::Json failed = pod;
  failed["status"]["phase"] = "Failed";
  EXPECT_FALSE(Read(failed).finished);
  test::Json runs = pod;
  runs["status"]["phase"] = "Running";
  EXPECT_FALSE(Read(runs).finished) << "one of its containers goes on";
  for (const char* const wrong : {"", "soon", "2026-11-27", "9999999999999"}) {
    test::Json odd = pod;
    odd["status"]["containerStatuses"] = test::Json::array({ended(wrong)});
    odd["status"].erase("initContainerStatuses");
    EXPECT_FALSE(Read(odd).finished) << wrong;
  }
}

}  // namespace
}  // namespace berth::wire::pod_series_test
