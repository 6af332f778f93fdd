// SPDX-License-Identifier: Apache-2.0
//
// Groups and topology domains through the four verbs, member by member as schedulers send them.
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "config/load.h"
#include "scoring/reason.h"
#include "server/extender/extender.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::extender_domains_test {
namespace {

using enum Reason;
using Names = std::vector<std::string>;

constexpr std::size_t kRack = 1;

class ExtenderDomains : public testing::Test {
 protected:
  void Add(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }
  // racks a (3 GPUs on two nodes) and b (4 on two).
  void AddTwoRacks() {
    Add(InRack("a1", "a", 2));
    Add(InRack("a2", "a", 1));
    Add(InRack("b1", "b", 1));
    Add(InRack("b2", "b", 3));
  }
  static ANode InRack(const std::string& name, const std::string& rack, int gpus) {
    return ANode(name).Gpus(gpus).Labelled({{"rack", rack}, {"zone", "z"}});
  }
  static APod Member(int number) {
    return APod(std::to_string(number)).Whole(1).Gang("default/g").GangSize(4);
  }

  // The nodes that pass the filter for the pod.
  Names Passing(const APod& pod) {
    const Extender::Moment now = extender_.Now();
    const auto& snapshot = now.snapshot;
    const std::vector<Reason> reasons =
        extender_.Filter(now, pod.Request(), Everybody(*snapshot)).reasons;
    Names names;
    for (NodeIndex i = 0; i < reasons.size(); ++i) {
      if (reasons[i] == kFits) names.emplace_back(snapshot->names().name(i));
    }
    return names;
  }
  Reason ReasonOf(const APod& pod, const std::string& node) {
    const Extender::Moment now = extender_.Now();
    const auto& snapshot = now.snapshot;
    return extender_.Filter(now, pod.Request(), Everybody(*snapshot))
        .reasons[snapshot->names().Find(node)];
  }
  // The passing node of the highest priority, the first by name among equals; "" without any.
  std::string Best(const APod& pod) {
    const Extender::Moment now = extender_.Now();
    const auto& snapshot = now.snapshot;
    const std::vector<Reason> reasons =
        extender_.Filter(now, pod.Request(), Everybody(*snapshot)).reasons;
    std::vector<NodeIndex> passing;
    for (NodeIndex i = 0; i < reasons.size(); ++i) {
      if (reasons[i] == kFits) passing.push_back(i);
    }
    const auto scores = extender_.Prioritize(now, pod.Request(), passing);
    if (scores.empty()) return "";
    const auto best = std::ranges::max_element(scores) - scores.begin();
    return std::string(snapshot->names().name(passing[static_cast<std::size_t>(best)]));
  }
  Status Bind(const APod& pod, const std::string& node) {
    const PodId& id = pod.Request().id;
    return BindNow(extender_, {id.namespace_name, id.name, id.uid, node});
  }
  static std::vector<NodeIndex> Everybody(const Snapshot& snapshot) {
    std::vector<NodeIndex> all(snapshot.size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    return all;
  }

  SimClock clock_;
  ClusterState state_;
  ScriptedBinder binder_;
  SilentSink sink_;
  NodeDomains domains_{{{"zone", {"zone"}}, {"rack", {"rack"}}}};
  Extender extender_{{state_, binder_, sink_, clock_, nullptr, nullptr, &domains_},
                     {EngineOf("expected-waste"), std::chrono::seconds(30)}};
};

TEST_F(ExtenderDomains, AGroupThatRequiresARackGetsTheOneThatHoldsAllOfIt) {
  AddTwoRacks();
  for (int i = 0; i < 4; ++i) {
    const APod pod = Member(i).Requires(kRack);
    const std::string node = Best(pod);
    EXPECT_EQ(node.substr(0, 1), "b") << i;
    EXPECT_TRUE(Bind(pod, node)) << i;
  }
  EXPECT_EQ(Passing(Member(4).Requires(kRack)), Names());
  EXPECT_EQ(ReasonOf(Member(4).Requires(kRack), "a1"), kOutsideDomain);
  EXPECT_EQ(state_.GangNodes(GangId::Of("default/g")), (Names{"b1", "b2"}));
}

TEST_F(ExtenderDomains, MembersGetTheSameGpusOnEveryNode) {
  for (const char* name : {"n1", "n2", "n3"}) Add(InRack(name, "a", 4));
  // A share of GPU 0 of n1 is taken, so that 1 and 2 are the lowest that are free everywhere.
  const APod small = APod("x").Share(500);
  ASSERT_EQ(Passing(small).size(), 3u);
  ASSERT_TRUE(Bind(small, "n1"));
  for (const char* name : {"n2", "n1", "n3"}) {
    const APod pod = APod(name).Whole(2).Gang("default/g").GangSize(3);
    ASSERT_FALSE(Passing(pod).empty());
    ASSERT_TRUE(Bind(pod, name));
    const auto grants = state_.FindPod(pod.Request().id.uid)->placement.grants;
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(grants[0].gpu, 1) << name;
    EXPECT_EQ(grants[1].gpu, 2) << name;
  }
}

TEST_F(ExtenderDomains, WhereNoRackHoldsTheGroupItsPodsWait) {
  AddTwoRacks();
  const APod pod = Member(0).GangSize(5).Requires(kRack);
  for (const char* node : {"a1", "a2", "b1", "b2"})
    EXPECT_EQ(ReasonOf(pod, node), kNoDomainHasRoom);
  Add(InRack("b3", "b", 1));
  EXPECT_EQ(Passing(pod), (Names{"b1", "b2", "b3"}));
}

TEST_F(ExtenderDomains, AGroupThatPrefersARackGoesOnInTheNextOne) {
  AddTwoRacks();
  Names nodes;
  for (int i = 0; i < 6; ++i) {
    const APod pod = Member(i).GangSize(6).Prefers(kRack);
    nodes.push_back(Best(pod));
    EXPECT_TRUE(Bind(pod, nodes.back())) << i;
  }
  // No rack holds six, so that the first goes anywhere; then a rack is filled before the other.
  const char first = nodes[0][0];
  const std::size_t holds = first == 'a' ? 3 : 4;
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i][0] == first, i < holds) << i;
}

TEST_F(ExtenderDomains, PreferringIsMoreThanNothing) {
  Add(InRack("a1", "a", 8));
  Add(InRack("b1", "b", 1));
  const APod other = APod("other").Whole(1).Gang("default/g");
  Apply(PodBound{other.Request(), other.On("a1", {0})});
  const ProfileSpec near = {"near", {{"best-fit", 1}, {"domain-locality", 3}}};
  extender_.Use(
      {std::make_shared<Engine>(*BuildProfile(near, TypicalMix())), std::chrono::seconds(30)});
  // Alone it takes the node that it fills.
  EXPECT_EQ(Best(APod("p").Whole(1)), "b1");
  EXPECT_EQ(Best(APod("p").Whole(1).Gang("default/g")), "a1");
  EXPECT_EQ(Best(APod("p").Whole(1).Gang("default/g").Unconstrained()), "b1");
}

TEST_F(ExtenderDomains, AMemberIsNotBoundOutsideOfWhereTheOthersAreByThen) {
  AddTwoRacks();
  const APod one = Member(1).Requires(kRack), two = Member(2).Requires(kRack);
  Passing(one);
  Passing(two);
  ASSERT_TRUE(Bind(one, "b1"));
  const Status bound = Bind(two, "a1");  // passed when nobody was placed
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, Errc::kConflict);
  EXPECT_EQ(bound.error().message,
            "pod does not fit: node a1 " + std::string(PredicateOf(Reason::kOutsideDomain)));
  EXPECT_FALSE(state_.FindPod("uid-2").has_value());  // and nothing stays reserved
  EXPECT_TRUE(Bind(two, "b2"));
}

TEST_F(ExtenderDomains, APodOfADomainThatIsGoneOpensAnother) {
  AddTwoRacks();
  const APod one = Member(1).GangSize(3).Requires(kRack),
             two = Member(2).GangSize(3).Requires(kRack);
  Passing(one);
  ASSERT_TRUE(Bind(one, "a1"));
  EXPECT_EQ(Passing(two), (Names{"a1", "a2"}));
  Apply(PodGone{"uid-1"});
  Apply(NodeRemoved{"a1"});
  EXPECT_EQ(Passing(two), (Names{"b1", "b2"}));
}

TEST_F(ExtenderDomains, NobodyIsEvictedOutsideOfTheGroupsDomain) {
  AddTwoRacks();
  const APod low = APod("low").Whole(1).Priority(-1), other = APod("low2").Whole(1).Priority(-1);
  Apply(PodBound{low.Request(), low.On("b1", {0})});
  Apply(PodBound{other.Request(), other.On("a2", {0})});
  const APod member = Member(1);
  Apply(PodBound{member.Request(), member.On("b2", {0})});
  const std::vector<NodeVictims> asked = {{"a2", {}}, {"b1", {}}};
  const std::vector<NodeVictims> in_b = {{"b1", {"uid-low"}}},
                                 both = {{"a2", {"uid-low2"}}, in_b[0]};
  const auto preempt = [&](const APod& pod) {
    return extender_.Preempt(extender_.Now(), pod.Request(), asked);
  };
  EXPECT_EQ(preempt(Member(2)), both);
  EXPECT_EQ(preempt(Member(2).Requires(kRack)), in_b);
}

TEST_F(ExtenderDomains, NobodyIsEvictedForAGroupThatWouldNotFitEvenSo) {
  AddTwoRacks();
  const APod low = APod("low").Whole(1).Priority(-1), other = APod("low2").Whole(1).Priority(-1);
  Apply(PodBound{low.Request(), low.On("b1", {0})});
  Apply(PodBound{other.Request(), other.On("a2", {0})});
  const std::vector<NodeVictims> asked = {{"a2", {}}, {"b1", {}}};
  const auto preempt = [&](const APod& pod) {
    return extender_.Preempt(extender_.Now(), pod.Request(), asked);
  };
  EXPECT_EQ(preempt(Member(1).Requires(kRack)), (std::vector<NodeVictims>{{"b1", {"uid-low"}}}));
  EXPECT_TRUE(preempt(Member(1).GangSize(5).Requires(kRack)).empty());
}

}  // namespace
}  // namespace berth::test::extender_domains_test
