// SPDX-License-Identifier: Apache-2.0
//
// What is known of how long pods run, and what a tenant can do to it.
#include "scoring/earmarks/pod_ends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random.h"
#include "test/support/builders.h"

namespace berth::test::run_times_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kNow = WallTime(hours(1000));

class RunTimesTest : public testing::Test {
 protected:
  static PodRequest Pod(std::uint64_t series, int gpus = 2, const std::string& space = "team") {
    return APod("p").Namespace(space).Whole(gpus).Series(series).Request();
  }
  void Ran(PodRequest pod, minutes time) {
    pod.id.uid = std::to_string(++pods_);
    table_.Add(pod, time, kNow + minutes(pods_));
  }
  [[nodiscard]] std::optional<Duration> Of(const PodRequest& pod, minutes age = {}) const {
    return table_.Newest()->Of(pod, age);
  }

  RunTimeTable table_;
  int pods_ = 0;
};

TEST_F(RunTimesTest, ArePredictedByTheLongerOnesOfTheKind) {
  for (int i = 1; i <= 20; ++i) Ran(Pod(1), minutes(100 + i));
  EXPECT_EQ(Of(Pod(1)), minutes(118)) << "nine of ten have ended by then";
  EXPECT_EQ(Of(Pod(1), minutes(50)), minutes(118));
  EXPECT_EQ(Of(Pod(1), minutes(110)), minutes(119)) << "it has outlived half of them";
  EXPECT_EQ(Of(Pod(1), minutes(118)), minutes(120));
  EXPECT_EQ(Of(Pod(1), minutes(119)), std::nullopt) << "older than nearly all";
  EXPECT_EQ(Of(Pod(1), minutes(500)), std::nullopt);
}

TEST_F(RunTimesTest, AreOfTheSeriesOrElseOfTheNamespace) {
  for (int i = 0; i < 11; ++i) Ran(Pod(1), minutes(20));
  EXPECT_EQ(Of(Pod(1)), std::nullopt) << "too few";
  for (int i = 0; i < 12; ++i) Ran(Pod(2), minutes(20));
  EXPECT_EQ(Of(Pod(2)), minutes(20));
  EXPECT_EQ(Of(Pod(1)), minutes(20)) << "as the pods of the namespace";
  EXPECT_EQ(Of(Pod(3)), minutes(20));
  EXPECT_EQ(Of(Pod(3, 8)), std::nullopt) << "none with as many GPUs";
  EXPECT_EQ(Of(Pod(2, 2, "other")), std::nullopt);
  EXPECT_EQ(Of(Pod(0)), std::nullopt) << "it does not end by itself";
  for (int i = 0; i < 40; ++i) Ran(Pod(4), minutes(60));
  EXPECT_EQ(Of(Pod(2), minutes(30)), std::nullopt) << "its own series is known, and it is older";
}

// A few that end early say nothing of those that go on; where most do, nothing is known.
TEST_F(RunTimesTest, TheLongerHalfSaysWhetherAnythingIsKnown) {
  for (int i = 0; i < 12; ++i) Ran(Pod(1), minutes(2));
  for (int i = 0; i < 20; ++i) Ran(Pod(1), minutes(200 + i));
  EXPECT_EQ(Of(Pod(1)), minutes(216));
  EXPECT_EQ(Of(Pod(1), minutes(3)), minutes(217));
  for (int i = 0; i < 10; ++i) Ran(Pod(1), minutes(2));
  for (int i = 0; i < 10; ++i) Ran(Pod(1), minutes(200 + i));
  for (int i = 0; i < 10; ++i) Ran(Pod(1), minutes(2));
  EXPECT_EQ(Of(Pod(1)), std::nullopt);
  EXPECT_EQ(Of(Pod(1), minutes(3)), std::nullopt);
}

// Log-normal with sigma 1: nothing in the kind says when a pod of it ends.
TEST_F(RunTimesTest, OfAKindWhosePodsDifferNothingIsKnown) {
  Random random(1);
  int known = 0, asked = 0;
  for (std::uint64_t series = 1; series <= 200; ++series) {
    for (int i = 0; i < 32; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - random.Unit()));
      const double normal = radius * std::cos(6.283185307 * random.Unit());
      Ran(Pod(series), minutes(1 + static_cast<int>(100 * std::exp(normal))));
    }
    for (const int age : {0, 30, 100, 200, 300}) {
      ++asked;
      if (Of(Pod(series), minutes(age))) ++known;
    }
  }
  EXPECT_LT(known * 20, asked) << known << " of " << asked;
}

TEST_F(RunTimesTest, TheLastOnesCountInWhateverOrderTheyCome) {
  const auto add = [this](int n) {
    PodRequest pod = Pod(1);
    pod.id.uid = std::to_string(n);
    table_.Add(pod, n < 8 ? minutes(500) : minutes(60), kNow + minutes(n));
  };
  for (int n = 39; n >= 0; --n) add(n);
  EXPECT_EQ(Of(Pod(1), minutes(100)), std::nullopt) << "the eight first ones are forgotten";
  const auto before = Of(Pod(1));
  EXPECT_EQ(before, minutes(60));
  for (int i = 0; i < 100; ++i) add(7);  // a list shows it again and again
  for (int i = 0; i < 100; ++i) add(39);
  EXPECT_EQ(Of(Pod(1)), before);
  EXPECT_EQ(Of(Pod(1), minutes(100)), std::nullopt);
}

TEST_F(RunTimesTest, APodThatDidNotRunIsLeftOut) {
  for (int i = 0; i < 10; ++i) Ran(Pod(1), minutes(0));
  for (int i = 0; i < 10; ++i) Ran(Pod(1), minutes(-5));
  for (int i = 0; i < 10; ++i) Ran(Pod(0), minutes(5));
  EXPECT_EQ(table_.kinds(), 0u);
}

// A namespace with names without end has its part, and takes none of the others'.
TEST_F(RunTimesTest, ANamespaceSpoilsNothingOfOthers) {
  for (int i = 0; i < 12; ++i) Ran(Pod(1), minutes(60));
  for (int i = 0; i < 10'000; ++i) {
    Ran(Pod(static_cast<std::uint64_t>(i) + 1, 2, "hostile"), minutes(1));
  }
  EXPECT_EQ(Of(Pod(1)), minutes(60));
  EXPECT_EQ(table_.kinds(), 2 + RunTimeTable::kMostOfNamespace);
}

TEST_F(RunTimesTest, AreBoundedInAll) {
  for (int space = 0; space < 30; ++space) {
    for (int i = 0; i < 300; ++i) {
      Ran(Pod(static_cast<std::uint64_t>(i) + 1, 2, "hostile" + std::to_string(space)), minutes(1));
    }
  }
  EXPECT_EQ(table_.kinds(), RunTimeTable::kMostKinds);
  for (int i = 0; i < 12; ++i) Ran(Pod(1), minutes(60));
  EXPECT_EQ(table_.kinds(), RunTimeTable::kMostKinds);
  EXPECT_EQ(Of(Pod(1)), minutes(60)) << "who has most makes place";
}

TEST_F(RunTimesTest, TheNewestIsMadeAnewOnlyWhereSomethingWasLearned) {
  EXPECT_TRUE(table_.Newest()->empty());
  Ran(Pod(1), minutes(1));
  const auto newest = table_.Newest();
  EXPECT_FALSE(newest->empty());
  EXPECT_EQ(table_.Newest(), newest);
  Ran(Pod(1), minutes(1));
  EXPECT_NE(table_.Newest(), newest);
}

}  // namespace
}  // namespace berth::test::run_times_test
