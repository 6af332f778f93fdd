// SPDX-License-Identifier: Apache-2.0
//
// CompositePodGroups and the PodGroups below them, and what their pods are taken to ask.
#include <gtest/gtest.h>

#include "server/dialects/groups/pod_group.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_rules.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::group_tree_test {
namespace {

using test::Json;
using Parts = std::vector<GangPart>;
using Roles = std::vector<GangRole>;

const TopologyLevels& Levels() {
  static const TopologyLevels levels = {{"zone", {"z"}}, {"block", {"b"}}, {"rack", {"r"}}};
  return levels;
}

class GroupTreeTest : public ::testing::Test {
 protected:
  GroupTreeTest() {
    groups_.Of(kNativeGroups).Reset({});
    groups_.Of(kCompositePodGroup).Reset({});
  }
  // As the watch brings it. least: of a gang; 0: it is basic. Returns what Berth says of it.
  std::string Put(const std::string& kind, const std::string& name, const std::string& parent,
                  int least, const std::string& topology = "") {
    const char* const count = kind == "PodGroup" ? "minCount" : "minGroupCount";
    Json spec = {{"schedulingPolicy", {{"basic", Json::object()}}},
                 {"workloadRef", {{"workloadName", "w"}, {"templateName", "t"}}}};
    if (least != 0) spec["schedulingPolicy"] = {{"gang", {{count, least}}}};
    if (!parent.empty()) spec["parentCompositePodGroupName"] = parent;
    if (!topology.empty()) {
      spec["schedulingConstraints"]["topology"] = Json::array({{{"key", topology}}});
    }
    const Json object = {{"apiVersion", "scheduling.k8s.io/v1alpha3"},
                         {"kind", kind},
                         {"metadata", {{"name", name}, {"namespace", "ns"}}},
                         {"spec", spec}};
    std::string problem;
    const auto read = TakeGroup(object, kind, rules_, groups_, problem);
    EXPECT_TRUE(read && *read) << object;
    return problem;
  }
  std::string PutTree(const std::string& name, const std::string& parent, int least,
                      const std::string& topology = "") {
    return Put("CompositePodGroup", name, parent, least, topology);
  }
  std::string PutGroup(const std::string& name, const std::string& parent, int least,
                       const std::string& topology = "") {
    return Put("PodGroup", name, parent, least, topology);
  }
  [[nodiscard]] PodRequest Pod(const std::string& group) const {
    Json pod = test::PodWithGpus("u", 8);
    pod["spec"]["schedulingGroup"] = {{"podGroupName", group}};
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules_);
    EXPECT_TRUE(observed) << pod;
    return observed ? observed->pod : PodRequest();
  }
  // A root with two groups: decode, and a group of prefill and router.
  void PutThreeLevels() {
    PutTree("llm", "", 2, "z");
    PutGroup("decode", "llm", 4, "r");
    PutTree("front", "llm", 2, "b");
    PutGroup("prefill", "front", 2, "r");
    PutGroup("router", "front", 1);
  }

  PodGroups groups_;
  const PodRules rules_{test::AllDialects(), DefaultConfig().resources, Levels(), &groups_};
};

TEST_F(GroupTreeTest, IsOneGangWithAMinimumForEachPodGroup) {
  PutTree("llm", "", 2);
  PutGroup("prefill", "llm", 2);
  PutGroup("decode", "llm", 3);
  const PodRequest pod = Pod("prefill");
  EXPECT_EQ(pod.gang.id.text(), "kubernetes:ns/llm");
  EXPECT_EQ(pod.gang.object, Gang::Object::kFound);
  EXPECT_EQ(pod.gang.minimum, 5);
  EXPECT_EQ(pod.gang.roles, (Roles{{"decode", 3}, {"prefill", 2}}));
  EXPECT_TRUE(pod.gang.has_roles);
  EXPECT_EQ(pod.role, "prefill");
  EXPECT_EQ(pod.domain, DomainAsk());
  EXPECT_EQ(pod.refusal, "");
  EXPECT_EQ(Pod("decode").gang, pod.gang);
  EXPECT_TRUE(pod.gang.comes_at_once());
}

TEST_F(GroupTreeTest, HasADomainForTheWholeAndOneForEachGroup) {
  PutThreeLevels();
  const PodRequest router = Pod("router");
  EXPECT_EQ(router.gang.id.text(), "kubernetes:ns/llm");
  EXPECT_EQ(router.gang.minimum, 7);
  EXPECT_EQ(router.gang.roles, (Roles{{"decode", 4}, {"prefill", 2}, {"router", 1}}));
  EXPECT_EQ(router.gang.parts,
            (Parts{{{}, 0}, {{"prefill", "router"}, 1}, {{"decode"}, 2}, {{"prefill"}, 2}}));
  EXPECT_EQ(router.domain.required, std::size_t{1});
  EXPECT_EQ(Pod("prefill").domain.required, std::size_t{2});
  // One domain for all is the pod's.
  PutTree("llm", "", 1, "b");
  groups_.Of(kCompositePodGroup).Remove("ns", "front");
  PutGroup("decode", "llm", 4);
  EXPECT_EQ(Pod("decode").domain.required, std::size_t{1});
  EXPECT_TRUE(Pod("decode").gang.parts.empty());
}

TEST_F(GroupTreeTest, ATopologyThatIsNoLevelIsKubeSchedulersAlone) {
  PutTree("llm", "", 1, "kubernetes.io/hostname");
  PutGroup("decode", "llm", 4, "no-level");
  EXPECT_EQ(Pod("decode").domain, DomainAsk());
  EXPECT_EQ(Pod("decode").refusal, "");
  PutGroup("alone", "", 4, "r");
  EXPECT_EQ(Pod("alone").domain, DomainAsk()) << "so it is of a PodGroup without a parent";
}

TEST_F(GroupTreeTest, IsWaitedForUntilAllOfItIsThere) {
  const auto says = [&](const PodRequest& pod) {
    return pod.gang.id.name + " " + pod.gang.controller.kind + " " + pod.gang.controller.name +
           (pod.gang.object == Gang::Object::kMissing ? " is missing" : "");
  };
  EXPECT_EQ(says(Pod("prefill")), "prefill   is missing");
  PutGroup("prefill", "front", 2);
  EXPECT_EQ(says(Pod("prefill")), "prefill CompositePodGroup front is missing");
  PutTree("front", "llm", 1);
  EXPECT_EQ(says(Pod("prefill")), "prefill CompositePodGroup llm is missing");
  EXPECT_EQ(Pod("prefill").gang.minimum, std::nullopt);
  PutTree("llm", "", 2);
  EXPECT_EQ(says(Pod("prefill")), "prefill CompositePodGroup llm is missing")
      << "one of two groups is there";
  PutGroup("decode", "llm", 3);
  EXPECT_EQ(says(Pod("prefill")), "llm CompositePodGroup llm");
  groups_.Of(kNativeGroups).Remove("ns", "decode");
  EXPECT_EQ(says(Pod("prefill")), "prefill CompositePodGroup llm is missing");
}

// Pods are read before their groups.
TEST_F(GroupTreeTest, APodThatWasReadBeforeIsOfTheTreeWhenItIsReadAgain) {
  PodRequest early = Pod("decode");
  Gang known = early.gang;
  PutThreeLevels();
  groups_.Update(known);
  EXPECT_EQ(known.id, early.gang.id) << "what is kept under that name keeps it";
  EXPECT_EQ(known.minimum, std::nullopt);
  groups_.Read(early);
  EXPECT_EQ(early.gang, Pod("decode").gang);
  EXPECT_EQ(early.domain, Pod("decode").domain);
  EXPECT_EQ(early.gang.parts.size(), 4u);
  groups_.Read(early);
  EXPECT_EQ(early.gang, Pod("decode").gang);
}

TEST_F(GroupTreeTest, GroupsThatStartByThemselvesAreGangsOfTheirOwn) {
  PutTree("set", "", 0);
  PutTree("replica", "set", 2);
  PutGroup("prefill", "replica", 2);
  PutGroup("decode", "replica", 3);
  PutGroup("tools", "set", 4);
  EXPECT_EQ(Pod("decode").gang.id.text(), "kubernetes:ns/replica");
  EXPECT_EQ(Pod("decode").gang.minimum, 5);
  EXPECT_EQ(Pod("tools").gang.id.text(), "kubernetes:ns/tools");
  EXPECT_EQ(Pod("tools").gang.minimum, 4);
  EXPECT_TRUE(Pod("tools").gang.controller.empty());
}

TEST_F(GroupTreeTest, WhatIsNotUnderstoodIsRefusedInWords) {
  PutTree("llm", "", 1);
  PutGroup("prefill", "llm", 2);
  PutGroup("decode", "llm", 3);
  EXPECT_EQ(Pod("decode").refusal,
            "CompositePodGroup llm: spec.schedulingPolicy.gang.minGroupCount: want all 2 of its "
            "groups, since Berth starts them together, got 1");
  EXPECT_EQ(PutTree("llm", "", -1),
            "spec.schedulingPolicy.gang.minGroupCount: want 1 or more, got -1");
  EXPECT_EQ(Pod("decode").refusal,
            "CompositePodGroup llm: spec.schedulingPolicy.gang.minGroupCount: want 1 or more, got "
            "-1");
  PutTree("llm", "", 3);
  PutTree("more", "llm", 0);
  EXPECT_EQ(Pod("decode").refusal,
            "CompositePodGroup llm: CompositePodGroup more: spec.schedulingPolicy: want gang, as "
            "its parent has");
  PutTree("llm", "", 2);
  groups_.Of(kCompositePodGroup).Remove("ns", "more");
  EXPECT_EQ(Pod("decode").refusal, "");
  PutGroup("decode", "llm", 20'000);
  EXPECT_EQ(Pod("prefill").refusal,
            "CompositePodGroup llm: PodGroup decode: spec.schedulingPolicy.gang.minCount: want a "
            "number of pods from 1 to 10000, got 20000");
  PutGroup("decode", "llm", 9'999);
  EXPECT_EQ(Pod("prefill").refusal,
            "CompositePodGroup llm: want at most 10000 pods in all, got more");
}

TEST_F(GroupTreeTest, HasAtMostFourLevels) {
  PutTree("a", "", 1);
  PutTree("b", "a", 1);
  PutTree("c", "b", 1);
  PutGroup("leaf", "c", 2);
  EXPECT_EQ(Pod("leaf").gang.id.name, "a");
  EXPECT_EQ(Pod("leaf").refusal, "");
  PutTree("a", "root", 1);
  PutTree("root", "", 1);
  EXPECT_EQ(Pod("leaf").refusal,
            "CompositePodGroup root: want at most 4 levels of groups, got more");
  PutTree("root", "a", 1);  // round and round
  EXPECT_NE(Pod("leaf").refusal, "");
  groups_.Of(kCompositePodGroup).Remove("ns", "root");
  PutTree("b", "b", 1);
  EXPECT_NE(Pod("leaf").refusal, "");
}

// A pod keeps the minimums and domains of all.
TEST_F(GroupTreeTest, IsBounded) {
  for (const int count : {64, 65, 1024, 1025}) {
    PutTree("llm", "", count, "b");
    for (int i = 0; i < count; ++i) PutGroup("g" + std::to_string(i), "llm", 1);
    EXPECT_EQ(Pod("g1").refusal,
              count <= 1024 ? ""
                            : "CompositePodGroup llm: want at most 4 levels and 1024 groups in "
                              "all, got more");
    EXPECT_TRUE(count > 1024 || Pod("g1").gang.has_roles);
    EXPECT_EQ(Pod("g1").gang.roles.size(), count == 64 ? 64u : 0u);
    EXPECT_EQ(Pod("g1").domain.required, std::size_t{1});
    PutGroup("g0", "llm", 1, "r");
    if (count <= 65) {
      EXPECT_EQ(Pod("g1").refusal,
                count == 64 ? ""
                            : "CompositePodGroup llm: want at most 64 PodGroups, each with at most "
                              "two topologies beside that of all, got 65");
    }
    PutGroup("g0", "llm", 1);
  }
}

// What is kept of trees is as they are now, also where there are more of them than are kept.
TEST_F(GroupTreeTest, OfManyEachIsAsItIsNow) {
  constexpr int kTrees = 300;
  const auto name = [](const char* what, int i) { return what + std::to_string(i); };
  for (int i = 0; i < kTrees; ++i) {
    PutTree(name("t", i), "", 1);
    PutGroup(name("g", i), name("t", i), 2);
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kTrees; ++i) {
      const Gang gang = Pod(name("g", i)).gang;
      EXPECT_EQ(gang.id.name, name("t", i));
      EXPECT_EQ(gang.minimum, round == 1 && i == 7 ? 5 : 2);
    }
    PutGroup("g7", "t7", 5);
  }
  groups_.Of(kNativeGroups).Remove("ns", "g8");
  EXPECT_EQ(Pod("g7").gang.minimum, 5);
  EXPECT_NE(Pod("g8").gang.object, Gang::Object::kFound) << "its tree has none of its groups";
}

// Those that are asked about, beside those of the cluster.
TEST_F(GroupTreeTest, MayBePartlyInTheCluster) {
  PutTree("llm", "", 2);
  PutGroup("decode", "llm", 3);
  PodGroups asked(&groups_);
  asked.Of(kNativeGroups)
      .Put({.namespace_name = "ns", .name = "prefill", .min_members = 2, .parent = "llm"});
  PodRequest pod;
  pod.gang.id = {"kubernetes", "ns", "prefill"};
  pod.gang.object = Gang::Object::kMissing;
  asked.Read(pod);
  EXPECT_EQ(pod.gang.id.name, "llm");
  EXPECT_EQ(pod.gang.minimum, 5);
}

}  // namespace
}  // namespace berth::wire::group_tree_test
