// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_needs.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::run_time_test {
namespace {

TEST(ExpectedDuration, IsOfWholeUnits) {
  EXPECT_EQ(ReadExpectedDuration("2h30m"), 9000);
  EXPECT_EQ(ReadExpectedDuration("45s"), 45);
  EXPECT_EQ(ReadExpectedDuration("1d1h1m1s"), 90'061);
  EXPECT_EQ(ReadExpectedDuration("90m"), 5400);
}

TEST(ExpectedDuration, IsOfASecondToAYear) {
  EXPECT_EQ(ReadExpectedDuration("1s"), 1);
  EXPECT_EQ(ReadExpectedDuration("365d"), kMostRunSeconds);
  for (const char* const wrong :
       {"", "0s", "0h0m", "366d", "365d1s", "99999999999999999999s", "1", "h", "-1h", "1.5h", "1h ",
        " 1h", "1m1h", "1h1h", "1w", "2h30", "nan", "\xff"}) {
    const auto read = ReadExpectedDuration(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(
        read.error().message,
        "annotation berth.dev/expected-duration: want a duration such as 2h30m, of d, h, m and "
        "s, up to 365d, got \"" +
            std::string(wrong) + "\"");
  }
  EXPECT_LT(ReadExpectedDuration(std::string(100'000, 'x')).error().message.size(), 200U);
}

TEST(RunTime, IsReadFromThePodAndRefusedInWordsThatHelp) {
  test::Json pod = test::PodWithGpus("u", 1);
  const auto decode = [&pod] {
    static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
    return observed ? observed->pod : PodRequest();
  };
  EXPECT_EQ(decode().expected_seconds, 0);
  EXPECT_EQ(decode().deadline_seconds, 0);
  pod["metadata"]["annotations"]["berth.dev/expected-duration"] = "2h";
  pod["spec"]["activeDeadlineSeconds"] = 9000;
  EXPECT_EQ(decode().expected_seconds, 7200);
  EXPECT_EQ(decode().deadline_seconds, 9000);
  EXPECT_EQ(decode().refusal, "");
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{1} << 60}) {
    pod["spec"]["activeDeadlineSeconds"] = none;
    EXPECT_EQ(decode().deadline_seconds, 0) << none;
  }
  pod["metadata"]["annotations"]["berth.dev/expected-duration"] = "soon";
  EXPECT_EQ(decode().expected_seconds, 0);
  EXPECT_NE(decode().refusal, "");
  EXPECT_EQ(decode().shape.gpu_count(), 1) << "the books keep what it holds";
}

}  // namespace
}  // namespace berth::wire::run_time_test
