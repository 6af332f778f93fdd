// SPDX-License-Identifier: Apache-2.0
//
// Which nodes Berth holds from node autoscalers, and for how long.
#include "server/planners/moves/room_maker.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "test/unit/server/room_world.h"

namespace berth::test::held_nodes_test {
namespace {

using Names = std::set<std::string>;

// Annotates each node at once, where it works.
class FakeHolder final : public NodeHolder {
 public:
  [[nodiscard]] Names Held() const override { return held; }
  void Hold(const std::string& node, bool hold) override {
    ++asked;
    if (!works) return;
    if (hold) {
      held.insert(node);
    } else {
      held.erase(node);
    }
  }
  std::set<std::string> held;
  int asked = 0;
  bool works = true;
};

class HeldNodesTest : public testing::Test {
 protected:
  void After(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      world_.After(1);
      nodes_.Look();
    }
  }
  static MakeRoomConfig KeepsIdle(int nodes) {
    MakeRoomConfig config = RoomWorld::Acts();
    config.idle_nodes = nodes;
    return config;
  }

  RoomWorld world_{{2, 2, 2}};
  FakeHolder holder_;
  HeldNodes nodes_{{.extender = world_.extender,
                    .rooms = world_.rooms,
                    .maker = *world_.maker,
                    .holder = holder_,
                    .clock = world_.clock}};
};

TEST_F(HeldNodesTest, IdleNodesAreHeldAndLetGoWhenTheyAreUsed) {
  world_.maker->Use(KeepsIdle(2));
  After(20);
  EXPECT_EQ(holder_.held, (Names{"n0", "n1"}));
  world_.Runs(APod("p").Whole(1), "n0", {0});
  After(60);
  EXPECT_EQ(holder_.held, (Names{"n0", "n1", "n2"}))
      << "an autoscaler need not hear of each change";
  After(120);
  EXPECT_EQ(holder_.held, (Names{"n1", "n2"}));
}

TEST_F(HeldNodesTest, NodesOfRoomsAreHeld) {
  DeviceRoom room{.pod = {"uid-p", "default", "p"}};
  room.node = "n1";
  ASSERT_TRUE(world_.rooms.Put(room));
  After(3);
  EXPECT_EQ(holder_.held, Names()) << "not for moments";
  After(10);
  EXPECT_EQ(holder_.held, Names{"n1"});
  world_.rooms.Drop("n1");
  After(200);
  EXPECT_EQ(holder_.held, Names());
}

TEST_F(HeldNodesTest, TheNextLeaderLetsGoOfWhatTheOneBeforeHeld) {
  holder_.held = {"n0", "gone"};
  After(60);
  EXPECT_EQ(holder_.held, (Names{"n0", "gone"})) << "it may be kept again in a moment";
  After(100);
  EXPECT_EQ(holder_.held, Names());
}

TEST_F(HeldNodesTest, AsksSeldomWhereItHasNoRight) {
  holder_.works = false;
  world_.maker->Use(KeepsIdle(1));
  After(120);
  EXPECT_GE(holder_.asked, 3);
  EXPECT_LE(holder_.asked, 5);
}

TEST_F(HeldNodesTest, HoldsNothingWhereItOnlyAdvises) {
  MakeRoomConfig config = KeepsIdle(1);
  config.mode = MakeRoomMode::kAdvise;
  world_.maker->Use(config);
  After(60);
  EXPECT_EQ(holder_.held, Names());
}

TEST_F(HeldNodesTest, SoManyNodesAreHeldAtMost) {
  for (std::size_t i = 0; i < HeldNodes::kMost; ++i) holder_.held.insert("x" + std::to_string(i));
  world_.maker->Use(KeepsIdle(1));
  After(10);
  EXPECT_EQ(holder_.asked, 0);
  EXPECT_EQ(HeldNodes::kMost, 512u);
}

}  // namespace
}  // namespace berth::test::held_nodes_test
