// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_json.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/wire/json/strict_json.h"
#include "test/support/builders.h"

namespace berth::wire::room_json_test {
namespace {

using test::ANode;
using test::APod;

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));

APod Moves(const std::string& name, std::chrono::minutes since) {
  APod pod(name);
  pod.Mobile(Mobility::kMoves).Checkpointed(kNow - since).Whole(1);
  return pod;
}

class RoomJsonTest : public testing::Test {
 protected:
  void Ask(const std::vector<ANode>& nodes, std::vector<PodRequest> pods, int idle = 0) {
    edited_.snapshot = test::SnapshotOf(nodes);
    pods_ = std::move(pods);
    request_.room.emplace().idle_nodes = idle;
    RoomWish wish{.ask = {.snapshot = edited_.snapshot, .rules = {.now = kNow}},
                  .pods = pods_,
                  .idle_nodes = idle};
    told_ = RoomFor(wish);
  }
  [[nodiscard]] RoomReport Report() const {
    return {request_, pods_, *edited_.snapshot, edited_, told_};
  }

  PlanRequest request_;
  std::vector<PodRequest> pods_;
  EditedNodes edited_;
  RoomUnits told_;
};

TEST_F(RoomJsonTest, PeopleReadTheMovesInOrderAndHowFewWouldDo) {
  APod volumes = Moves("web", std::chrono::minutes(180));
  volumes.LeftToScheduler({.volumes = true});
  Ask({ANode("a").Gpus(2).Holding(volumes, {0}),
       ANode("b").Gpus(2).Holding(APod("x").Whole(1), {0})},
      {APod("w").Whole(2).Request()});
  EXPECT_EQ(
      TextOf(Report()),
      "Moving 1 pod lets default/w in:\n"
      "  1. default/web from a with GPU 0 to b with GPU 1 (3 h of work); not judged: volumes\n"
      "  then default/w fits on a with GPU 0, GPU 1\n"
      "  At least 1 move is needed; this plan costs 3.1 GPU-hours, and none costs less\n"
      "1 move makes room for 1 of 1 goal\n");
}

TEST_F(RoomJsonTest, WhereNoMoveHelpsPeopleReadWhy) {
  Ask({ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}), ANode("b").Gpus(1)},
      {APod("w").Whole(2).Request()});
  EXPECT_EQ(TextOf(Report()),
            "No moves make room for default/w: no node would do, even if every pod that may be "
            "moved were gone\n"
            "  1 GPU pod stays: it is not known whether a controller would make it anew\n"
            "0 moves make room for 0 of 1 goal; for 1 no plan was found\n");
  Ask({ANode("a").Gpus(2)}, {APod("w").Whole(2).Request()});
  EXPECT_EQ(TextOf(Report()).substr(0, 33), "default/w fits without a move\n  t");
}

TEST_F(RoomJsonTest, ProgramsReadEachField) {
  Ask({ANode("a").Gpus(2).Holding(Moves("web", std::chrono::minutes(60)), {0}),
       ANode("b").Gpus(2).Holding(APod("x").Whole(1), {0})},
      {}, 1);
  const Json json = Json::parse(EncodeRoom(Report()));
  const Json& goal = json["goals"][0];
  EXPECT_EQ(goal["for"], "");
  EXPECT_EQ(goal["found"], true);
  EXPECT_EQ(goal["optimal"], true);
  EXPECT_EQ(goal["least_moves"], 1);
  EXPECT_EQ(goal["idle_nodes"], Json::array({"a"}));
  const Json& move = goal["moves"][0];
  EXPECT_EQ(move["pod"], "default/web");
  EXPECT_EQ(move["from"], "a");
  EXPECT_EQ(move["to"], "b");
  EXPECT_EQ(move["minutes_lost"], 60);
  EXPECT_EQ(move["devices"].size(), 1u);
  EXPECT_FALSE(move.contains("waits_for"));
}

}  // namespace
}  // namespace berth::wire::room_json_test
