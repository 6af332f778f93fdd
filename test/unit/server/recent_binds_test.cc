// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/sim_clock.h"
#include "server/why/live.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::recent_binds_test {
namespace {

class RecentBindsTest : public testing::Test {
 protected:
  void Filter(const std::string& uid, std::size_t candidates, std::size_t fitting) {
    const PodId pod{uid, "ns", "pod-" + uid};
    binds_.Record(
        {.verb = Verb::kFilter, .pod = &pod, .candidates = candidates, .fitting = fitting});
  }
  void Bind(const std::string& uid) {
    const PodId pod{uid, "ns", "pod-" + uid};
    const Placement placement{.node = "n1", .grants = {{2}}};
    binds_.Record({.verb = Verb::kBind, .pod = &pod, .placement = &placement});
  }

  SimClock clock_;
  RecentBinds binds_{clock_};
};

TEST_F(RecentBindsTest, ABindIsTakenDownWithWhatFilterSaid) {
  Filter("1", 40, 7);
  Filter("1", 40, 6);
  clock_.Advance(std::chrono::seconds(60));
  Bind("1");
  ASSERT_EQ(binds_.All().size(), 1u);
  const wire::BoundRow row = binds_.All()[0];
  EXPECT_EQ(row.pod, "ns/pod-1");
  EXPECT_EQ(row.node, "n1");
  EXPECT_EQ(row.devices, "GPU 2");
  EXPECT_EQ(row.candidates, 40u);
  EXPECT_EQ(row.fitting, 6u);
  const auto wall = clock_.Wall().time_since_epoch();
  EXPECT_EQ(row.at, std::chrono::duration_cast<std::chrono::seconds>(wall).count());
}

TEST_F(RecentBindsTest, TheNewestComesFirstAndTheOldestIsForgotten) {
  for (std::size_t i = 0; i < RecentBinds::kCapacity + 3; ++i) Bind(std::to_string(i));
  const auto rows = binds_.All();
  EXPECT_EQ(rows.size(), RecentBinds::kCapacity);
  EXPECT_EQ(rows.front().pod, "ns/pod-" + std::to_string(RecentBinds::kCapacity + 2));
  EXPECT_EQ(rows.back().pod, "ns/pod-3");
}

TEST_F(RecentBindsTest, ABindThatFailsIsNone) {
  const PodId pod{"1", "ns", "p"};
  const Error error{Errc::kConflict, "busy"};
  binds_.Record({.verb = Verb::kBind, .pod = &pod, .error = &error});
  EXPECT_TRUE(binds_.All().empty());
}

TEST_F(RecentBindsTest, PodsThatAreOnlyAskedAboutTakeBoundedMemory) {
  for (std::size_t i = 0; i < 2 * RecentBinds::kMostAsked; ++i) Filter(std::to_string(i), 9, 9);
  Bind("0");
  EXPECT_EQ(binds_.All()[0].candidates, 0u) << "forgotten";
}

}  // namespace
}  // namespace berth::recent_binds_test
