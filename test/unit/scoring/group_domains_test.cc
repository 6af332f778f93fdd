// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/group_domains.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/snapshot.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::group_domains_test {
namespace {

using enum Reason;
using Reasons = std::vector<Reason>;

constexpr std::size_t kZone = 0, kRack = 1;
const TopologyLevels kLevels = {{"zone", {"zone"}}, {"rack", {"rack"}}, {"unused", {"unused"}}};

ANode In(const std::string& name, const std::string& zone, const std::string& rack, int gpus) {
  Labels labels;
  if (!rack.empty()) labels.emplace_back("rack", rack);
  if (!zone.empty()) labels.emplace_back("zone", zone);
  return ANode(name).Gpus(gpus).Labelled(labels);
}

APod Member(const std::string& name) { return APod(name).Whole(1).Gang("ns/g"); }

// A snapshot and what decides in it.
struct World {
  explicit World(const std::vector<ANode>& nodes)
      : snapshot(SnapshotOf(nodes)), tree(DomainsOf(*snapshot, kLevels)) {}

  [[nodiscard]] GroupMembers MembersOf(const PodRequest& pod) const {
    std::vector<std::string> names;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) names.emplace_back(snapshot->names().name(i));
    return MembersOn(*snapshot, pod, names);
  }
  [[nodiscard]] std::vector<NodeIndex> Everybody() const {
    std::vector<NodeIndex> all(snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    return all;
  }
  // As the filters would say it; then with the required domain.
  [[nodiscard]] Reasons Filter(const APod& pod) const { return Filter(pod, Everybody()); }
  [[nodiscard]] Reasons Filter(const APod& pod, const std::vector<NodeIndex>& candidates) const {
    const PodRequest& request = pod.Request();
    Reasons reasons;
    for (const NodeIndex i : candidates) {
      reasons.push_back(FirstObjection(snapshot->node(i), request.shape));
    }
    RequireDomain(*snapshot, tree, request, MembersOf(request), candidates, reasons);
    return reasons;
  }
  [[nodiscard]] std::vector<int> Pull(const APod& pod) const {
    const PodRequest& request = pod.Request();
    return PullOf(*snapshot, tree, request, MembersOf(request), Everybody());
  }

  std::shared_ptr<const Snapshot> snapshot;
  DomainTree tree;
};

TEST(RequireDomain, TheFirstMemberOpensTheDomainThatBestFitsTheGroup) {
  const World world(
      {In("n1", "z", "a", 3), In("n2", "z", "b", 2), In("n3", "z", "b", 2), In("n4", "z", "c", 8)});
  const Reasons in_b = {kOutsideDomain, kFits, kFits, kOutsideDomain};
  EXPECT_EQ(world.Filter(Member("p").GangSize(4).Requires(kRack)), in_b);
  const Reasons in_a = {kFits, kOutsideDomain, kOutsideDomain, kOutsideDomain};
  EXPECT_EQ(world.Filter(Member("p").GangSize(3).Requires(kRack)), in_a);
  // Of nobody knows how many: where there is most room.
  const Reasons in_c = {kOutsideDomain, kOutsideDomain, kOutsideDomain, kFits};
  EXPECT_EQ(world.Filter(Member("p").Requires(kRack)), in_c);
  // A pod that stands alone is one.
  EXPECT_EQ(world.Filter(APod("p").Whole(1).Requires(kRack)), in_a);
}

TEST(RequireDomain, AMemberFindsTheSameDomainWithoutTheFullNodes) {
  const World world({In("n1", "z", "a", 1), In("n2", "z", "a", 3), In("n3", "z", "b", 5)});
  const APod pod = Member("p").GangSize(4).Requires(kRack);
  EXPECT_EQ(world.Filter(pod, {1, 2}), (Reasons{kFits, kOutsideDomain}));
  EXPECT_EQ(world.Filter(pod, {2}), (Reasons{kFits}));  // the scheduler offers nothing of rack a
}

TEST(RequireDomain, NodesThatDoNotAdmitThePodAreNoRoom) {
  const World world(
      {In("n1", "z", "a", 1), In("n2", "z", "a", 3).Tainted("down"), In("n3", "z", "b", 5)});
  EXPECT_EQ(world.Filter(Member("p").GangSize(4).Requires(kRack), {0, 2}),
            (Reasons{kOutsideDomain, kFits}));
}

TEST(RequireDomain, WhereNoDomainHoldsTheGroupNothingFits) {
  const World world({In("n1", "z", "a", 3), In("n2", "z", "b", 1), In("n3", "z", "b", 0)});
  EXPECT_EQ(world.Filter(Member("p").GangSize(4).Requires(kRack)),
            (Reasons{kNoDomainHasRoom, kNoDomainHasRoom, kNoGpu}));
  EXPECT_EQ(world.Filter(Member("p").GangSize(4).Requires(kZone)), (Reasons{kFits, kFits, kNoGpu}));
}

TEST(RequireDomain, LaterMembersGoWhereTheFirstAre) {
  const World world({In("n1", "z", "a", 8),
                     In("n2", "z", "b", 2).Holding(Member("1").GangSize(2), {0}),
                     In("n3", "z", "b", 1).HoldingReserved(Member("2"), {0}), In("n4", "y", "b", 8),
                     In("n5", "z", "", 8)});
  // n4 is in a rack of the same name in another zone; on n3 evictions could make room.
  EXPECT_EQ(world.Filter(Member("3").GangSize(2).Requires(kRack)),
            (Reasons{kOutsideDomain, kFits, kGpusBusy, kOutsideDomain, kNoTopologyDomain}));
}

TEST(RequireDomain, TheDomainOfTheMembersHoldsAlsoWhenItIsFull) {
  const World world(
      {In("n1", "z", "a", 8), In("n2", "z", "b", 1).Holding(Member("1").GangSize(2), {0})});
  EXPECT_EQ(world.Filter(Member("2").GangSize(2).Requires(kRack)),
            (Reasons{kOutsideDomain, kGpusBusy}));
}

TEST(RequireDomain, MembersInSeveralDomainsOpenAllOfThem) {
  const World world({In("n1", "z", "a", 8).Holding(Member("1"), {0}),
                     In("n2", "z", "b", 8).Holding(Member("2"), {0}), In("n3", "z", "c", 8)});
  EXPECT_EQ(world.Filter(Member("3").Requires(kRack)), (Reasons{kFits, kFits, kOutsideDomain}));
}

TEST(RequireDomain, APodIsNoMemberToItselfNorIsAnotherGroups) {
  const World world({In("n1", "z", "a", 2).HoldingReserved(Member("1"), {0}),
                     In("n2", "z", "b", 4).Holding(APod("x").Whole(1).Gang("ns/other"), {0})});
  EXPECT_EQ(world.Filter(Member("1").GangSize(2).Requires(kRack)),
            (Reasons{kOutsideDomain, kFits}));
}

TEST(RequireDomain, AMemberOutsideOfEveryDomainBindsNobody) {
  const World world({In("n1", "z", "", 2).Holding(Member("1"), {0}), In("n2", "z", "b", 2)});
  EXPECT_EQ(world.Filter(Member("2").GangSize(3).Requires(kRack)),
            (Reasons{kNoTopologyDomain, kFits}));  // two are missing, and rack b holds two
}

TEST(RequireDomain, ReasonsThatNothingHelpsAgainstStay) {
  const World world({In("n1", "z", "a", 1), In("n2", "z", "b", 0), In("n3", "z", "b", 1)});
  EXPECT_EQ(world.Filter(Member("p").Requires(kRack)), (Reasons{kFits, kNoGpu, kOutsideDomain}));
}

TEST(MayJoin, AsksOnlyForTheMembersThatArePlaced) {
  const World world({In("n1", "z", "a", 8), In("n2", "z", "b", 8).Holding(Member("1"), {0}),
                     In("n3", "z", "", 8)});
  const PodRequest second = Member("2").Requires(kRack).Request();
  const GroupMembers members = world.MembersOf(second);
  EXPECT_EQ(members.placed, 1);
  EXPECT_EQ(MayJoin(world.tree, second, members, 0), kOutsideDomain);
  EXPECT_EQ(MayJoin(world.tree, second, members, 1), kFits);
  EXPECT_EQ(MayJoin(world.tree, second, members, 2), kNoTopologyDomain);
  EXPECT_EQ(MayJoin(world.tree, second, {}, 0), kFits);
  EXPECT_EQ(MayJoin(world.tree, second, {}, 2), kNoTopologyDomain);
}

TEST(HoldsRestOfGroup, CountsTheNodeAfterPlacementAndTheRestOfItsDomainAsItIs) {
  const World world({In("n1", "z", "a", 2).Holding(APod("x").Whole(2), {0, 1}),
                     In("n2", "z", "a", 1), In("n3", "z", "b", 8)});
  const Node emptied = In("n1", "z", "a", 2).Build();
  const auto holds = [&](const APod& pod) {
    const PodRequest& request = pod.Request();
    return HoldsRestOfGroup(*world.snapshot, world.tree, request, world.MembersOf(request), 0,
                            emptied);
  };
  EXPECT_TRUE(holds(Member("p").GangSize(3).Requires(kRack)));
  EXPECT_FALSE(holds(Member("p").GangSize(4).Requires(kRack)));
  EXPECT_TRUE(holds(Member("p").GangSize(4).Requires(kZone)));
  EXPECT_TRUE(holds(Member("p").GangSize(4)));
}

TEST(Pull, NodesAreDrawnToTheMembersByTheLevelsThatTheyShare) {
  const World world({In("n1", "z", "a", 8).Holding(Member("1"), {0}), In("n2", "z", "a", 8),
                     In("n3", "z", "b", 8), In("n4", "y", "a", 8), In("n5", "z", "", 8)});
  EXPECT_EQ(world.Pull(Member("2")), (std::vector<int>{100, 100, 50, 0, 50}));
  EXPECT_EQ(world.Pull(Member("2").Prefers(kZone)), (std::vector<int>{100, 100, 100, 0, 100}));
  EXPECT_EQ(world.Pull(Member("2").Unconstrained()), std::vector<int>());
  EXPECT_EQ(world.Pull(APod("alone").Whole(1)), std::vector<int>());
}

TEST(Pull, BeforeTheFirstMemberItIsTheDomainThatBestFitsTheGroup) {
  const World world(
      {In("n1", "z", "a", 4), In("n2", "z", "b", 2), In("n3", "z", "b", 1), In("n4", "y", "c", 4)});
  EXPECT_EQ(world.Pull(Member("1").GangSize(3)), (std::vector<int>{50, 100, 100, 0}));
  EXPECT_EQ(world.Pull(Member("1").GangSize(7)), (std::vector<int>{50, 50, 50, 0}));  // zone z
  EXPECT_EQ(world.Pull(Member("1").GangSize(8)), std::vector<int>());  // nothing narrower than all
  EXPECT_EQ(world.Pull(Member("1")), std::vector<int>());
}

}  // namespace
}  // namespace berth::test::group_domains_test
