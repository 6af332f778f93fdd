// SPDX-License-Identifier: Apache-2.0
#include "server/pages/live_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::live_view_test {
namespace {

NodeSpec InRack(const std::string& name, const std::string& zone, const std::string& rack) {
  NodeSpec spec = MachineWith(name, 2);
  spec.labels = {{"rack", rack}, {"zone", zone}};
  return spec;
}

class LiveViewTest : public testing::Test {
 protected:
  void Waits(const std::string& name, int gpus, std::chrono::seconds age) {
    PodRequest pod = APod(name).Whole(gpus).Request();
    pod.id = {name, "ns", name};
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod), .created = kBegin - age});
  }
  std::string Text(bool whole = true) const {
    return WritePage(whole ? pages_.whole : pages_.brief).body;
  }
  Json Shown(bool whole = true) const { return Json::parse(Text(whole)); }

  static constexpr WallTime kBegin{std::chrono::seconds(1'800'000'000)};
  TestService service_{{InRack("a1", "z1", "r1"), InRack("a2", "z1", "r1"),
                        InRack("b1", "z2", "r1"), InRack("b2", "z2", "r1"), MachineWith("cpu", 0)}};
  WaitingPods& waiting_ = service_.waiting();
  NodeDomains domains_{{{"zone", {"zone"}}, {"leaf", {"rack"}}}};
  SimClock clock_;
  RecentBinds binds_{clock_};
  const Live live_{.extender = service_.extender(),
                   .state = service_.state(),
                   .waiting = waiting_,
                   .gangs = service_.gangs(),
                   .domains = domains_,
                   .pod_rules = service_.rules(),
                   .node_rules = service_.live().node_rules,
                   .readiness = service_.readiness(),
                   .binds = &binds_};
  LivePages pages_ = MakeLivePages(live_, "1.2.3", "prod-eu");
};

TEST_F(LiveViewTest, AllNodesWithGpusAreThereWithTheirPlaces) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "a2"), "");
  const Json live = Shown();
  EXPECT_EQ(live["version"], 1);
  EXPECT_EQ(live["berth"], "1.2.3");
  EXPECT_EQ(live["names"], Json::array({"a1", "a2", "b1", "b2"}));
  EXPECT_EQ(live["cells"], ".. #. .. ..");
  EXPECT_EQ(live["flags"], "....");
  EXPECT_EQ(live["model_names"], Json::array({"A100"}));
  EXPECT_EQ(live["place_names"], Json::array({"zone z1 / leaf r1", "zone z2 / leaf r1"}))
      << "one rack's name in two zones is two racks";
  EXPECT_EQ(live["place"], Json::array({0, 0, 1, 1}));
  EXPECT_EQ(live["without_gpus"], 1);
  EXPECT_EQ(live["top"][0]["gpus"], 8);
  EXPECT_EQ(live["cluster"], "prod-eu");
  EXPECT_EQ(live["namespaces"], Json::parse(R"([{"name":"ns","gpus":1.0,"mig_devices":0,"pods":1,
                                                 "nodes":1}])"));
  EXPECT_EQ(live["classes"], Json::array());
}

TEST_F(LiveViewTest, APodThatWaitsSaysItsClass) {
  PodRequest pod = APod("p").Whole(1).Request();
  pod.classes = {"training", "batch"};
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  EXPECT_EQ(Shown()["waiting"][0]["class"], "training");
}

TEST_F(LiveViewTest, OfVeryManyNamespacesThoseWithTheMostGpusAreListed) {
  PodRecords pods;
  for (std::size_t i = 0; i < wire::kMostOwnerRows + 7; ++i) {
    const std::string number = std::to_string(i);
    pods.push_back(APod("p" + number)
                       .Share(1 + static_cast<int>(i))
                       .Namespace("ns" + number)
                       .BoundOn("a1", {0}));
  }
  const std::vector<std::shared_ptr<const Node>> nodes = {
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(MachineWith("a1", 1)), pods)};
  const Snapshot snapshot(nodes);
  const Json live = Json::parse(wire::EncodeLive(wire::EncodeNews({}), snapshot,
                                                 wire::EncodeNodeSet(snapshot, {}, nullptr), true));
  EXPECT_EQ(live["namespaces"].size(), wire::kMostOwnerRows);
  EXPECT_EQ(live["namespaces"][0]["name"], "ns" + std::to_string(wire::kMostOwnerRows + 6));
}

TEST_F(LiveViewTest, ANodeSaysWhyItTakesNoPods) {
  NodeSpec not_ready = MachineWith("a1", 1), cordoned = MachineWith("b1", 1);
  NodeSpec disordered = MachineWith("b2", 1);
  disordered.gpu_condition = "XIDErrors=True";
  not_ready.ready = false;
  cordoned.taints = {{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule}};
  ASSERT_TRUE(service_.state().Apply(
      std::vector<ClusterEvent>{NodeUpserted{not_ready}, NodeUpserted{cordoned},
                                NodeUpserted{disordered}, GpuPodsRefused{"a2", true}}));
  EXPECT_EQ(Shown()["flags"], "nrcd");
  EXPECT_EQ(Shown()["cells"], "u uu u u");
}

TEST_F(LiveViewTest, PodsThatWaitAreThereTheOldestFirstWithWhy) {
  Waits("young", 2, std::chrono::seconds(5));
  Waits("old", 4, std::chrono::seconds(500));
  const Json live = Shown();
  EXPECT_EQ(live["waiting_in_all"], 2);
  EXPECT_EQ(live["waiting"][0]["pod"], "ns/old");
  EXPECT_EQ(live["waiting"][0]["asks"], "4 GPUs");
  EXPECT_EQ(live["waiting"][0]["since"], 1'800'000'000 - 500);
  EXPECT_NE(live["waiting"][0]["why"].get<std::string>().find("fits none of 5 nodes: "),
            std::string::npos);
  EXPECT_EQ(live["waiting"][0]["fits"], "on a1 with 2 GPUs instead of 4");
  EXPECT_EQ(live["waiting"][1]["why"], "fits 4 of 5 nodes now, best is a1");
  EXPECT_FALSE(live["waiting"][1].contains("fits"));
}

TEST_F(LiveViewTest, APodThatWasBoundJustNowIsThereOnce) {
  Waits("pod-1", 1, std::chrono::seconds(5));
  Waits("pod-2", 1, std::chrono::seconds(5));
  Json pod = PodWithGpus("1", 1);
  pod["metadata"]["uid"] = "pod-1";
  ASSERT_EQ(service_.Ask("filter", ArgsWithNames(pod, Json::array({"a2"})))["NodeNames"],
            Json::array({"a2"}));
  ASSERT_EQ(
      service_.Ask(
          "bind",
          Json{{"PodName", "pod-1"}, {"PodNamespace", "ns"}, {"PodUID", "pod-1"}, {"Node", "a2"}}
              .dump())["Error"],
      "");
  const Json live = Shown();
  EXPECT_EQ(live["cells"], ".. #. .. ..");
  EXPECT_EQ(live["waiting_in_all"], 1);
  EXPECT_EQ(live["waiting"][0]["pod"], "ns/pod-2");
}

TEST_F(LiveViewTest, OfVeryManyPodsThoseThatHaveWaitedLongestAreListed) {
  for (std::size_t i = 0; i < wire::kMostWaitingRows + 5; ++i) {
    Waits("p" + std::to_string(i), 1, std::chrono::seconds(i));
  }
  const Json live = Shown();
  EXPECT_EQ(live["waiting_in_all"], wire::kMostWaitingRows + 5);
  EXPECT_EQ(live["waiting"].size(), wire::kMostWaitingRows);
  EXPECT_EQ(live["waiting"][0]["pod"], "ns/p" + std::to_string(wire::kMostWaitingRows + 4));
}

TEST_F(LiveViewTest, WhoHasTheSetOfNodesIsNotSentItAgain) {
  const std::string set = Shown()["set"];
  EXPECT_TRUE(pages_.has_set("set=" + set));
  EXPECT_FALSE(pages_.has_set(""));
  EXPECT_FALSE(pages_.has_set("set=" + set + "1"));
  const Json brief = Shown(false);
  EXPECT_EQ(brief["set"], set);
  EXPECT_FALSE(brief.contains("names"));
  EXPECT_EQ(brief["cells"], Shown()["cells"]);
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "a2"), "");
  EXPECT_EQ(Shown()["set"], set) << "a pod changes no names";
  ASSERT_TRUE(
      service_.state().Apply(std::vector<ClusterEvent>{NodeUpserted{InRack("c1", "z3", "r9")}}));
  EXPECT_NE(Shown(false)["set"], set) << "so that the page asks for the whole";
  EXPECT_FALSE(pages_.has_set("set=" + set));
}

TEST_F(LiveViewTest, TheTextIsWrittenAnewOnlyWhenSomethingHasChanged) {
  Waits("p", 4, std::chrono::seconds(5));
  const auto version = [this] { return pages_.whole.draft().version; };
  const std::string before = version();
  EXPECT_EQ(version(), before);
  EXPECT_EQ(Text(), Text());
  Waits("q", 4, std::chrono::seconds(5));
  const std::string with_pod = version();
  EXPECT_NE(with_pod, before);
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "a2"), "");
  EXPECT_NE(version(), with_pod);
}

TEST_F(LiveViewTest, WhoDoesNotLeadShowsWhyAndNothingElse) {
  Waits("p", 1, std::chrono::seconds(5));
  service_.readiness().Set("standby: another replica is the leader");
  const Json live = Shown();
  EXPECT_EQ(live["not_ready"], "standby: another replica is the leader");
  EXPECT_TRUE(live["names"].empty());
  EXPECT_TRUE(live["waiting"].empty());
  EXPECT_EQ(live["cells"], "");
}

TEST_F(LiveViewTest, TheLastDecisionsAreThere) {
  const PodId pod{"u", "ns", "p"};
  const Placement placement{.node = "a1", .grants = {{0}}};
  binds_.Record(Decision{.verb = Verb::kFilter, .pod = &pod, .candidates = 9, .fitting = 3});
  binds_.Record(Decision{.verb = Verb::kBind, .pod = &pod, .placement = &placement});
  Json bound = Shown()["bound"];
  EXPECT_EQ(bound[0]["since"], clock_.Wall().time_since_epoch() / std::chrono::seconds(1));
  bound[0].erase("since");
  EXPECT_EQ(bound, Json::parse(R"([{"pod":"ns/p","node":"a1","devices":"GPU 0",
                                    "candidates":9,"fitting":3}])"));
}

TEST(EncodeNews, ThePlanThatMakesRoomIsThereWithItsMoves) {
  EXPECT_FALSE(Json::parse(wire::EncodeNews({})).contains("room"));
  RoomProgress room{.name = "ml/train", .is_gang = true};
  room.begun = WallTime(std::chrono::seconds(7));
  room.moves = {{.pod = {"web", "ns", "u"}, .from = "a", .to = "b"}};
  room.moves.front().step = RoomProgress::Step::kEnds;
  wire::LiveNews news;
  news.room = std::make_shared<const RoomProgress>(room);
  const Json shown = Json::parse(wire::EncodeNews(news))["room"];
  EXPECT_EQ(shown["for"], "ml/train");
  EXPECT_EQ(shown["gang"], true);
  EXPECT_EQ(shown["since"], 7);
  EXPECT_EQ(shown["moves"][0]["step"], "ends");
  EXPECT_EQ(shown["moves"][0]["to"], "b");
  EXPECT_FALSE(shown.contains("ended"));
  room.ended = "1 pod was moved for it";
  room.is_done = true;
  news.room = std::make_shared<const RoomProgress>(room);
  EXPECT_EQ(Json::parse(wire::EncodeNews(news))["room"]["done"], true);
}

TEST(DevicesText, WholeGpusAreRanges) {
  Placement placement{.node = "n", .grants = {{0}, {1}, {2}, {5}}};
  EXPECT_EQ(wire::DevicesText(placement), "GPUs 0-2,5");
  placement.grants = {{3}};
  EXPECT_EQ(wire::DevicesText(placement), "GPU 3");
  placement.grants = {{3, 300}};
  EXPECT_EQ(wire::DevicesText(placement), "GPU 3 (300 thousandths)");
  placement.grants = {};
  placement.places = 1;
  EXPECT_EQ(wire::DevicesText(placement), "1 GPU replica");
}

}  // namespace
}  // namespace berth::test::live_view_test
