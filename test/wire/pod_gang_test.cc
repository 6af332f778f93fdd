// SPDX-License-Identifier: Apache-2.0
//
// Grove's PodGangs, and what their pods are taken to ask.
#include "server/dialects/groups/pod_group_json.h"

#include <gtest/gtest.h>

#include "server/dialects/groups/gang_by.h"
#include "server/dialects/groups/pod_group.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_rules.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_gang_test {
namespace {

using test::Json;

const TopologyLevels& Levels() {
  static const TopologyLevels levels = {{"zone", {"z"}}, {"block", {"b"}}, {"rack", {"r"}}};
  return levels;
}

Json Pack(const std::string& key, const std::string& label) {
  return {{"packConstraint", {{key, label}}}};
}

class PodGangTest : public ::testing::Test {
 protected:
  // Two workers and a leader.
  static Json Spec() {
    return {{"podgroups",
             {{{"name", "s-0-worker"},
               {"minReplicas", 2},
               {"podReferences", {{{"namespace", "ns"}, {"name", "s-0-worker-abc"}}}}},
              {{"name", "s-0-leader"}, {"minReplicas", 1}, {"podReferences", Json::array()}}}},
            {"priorityClassName", "high"},
            {"reuseReservationRef", {{"namespace", "ns"}, {"name", "before"}}}};
  }
  // As the watch brings it. Returns what Berth says of it.
  std::string Put(const Json& spec) {
    const Json gang = {{"apiVersion", "scheduler.grove.io/v1alpha1"},
                       {"kind", "PodGang"},
                       {"metadata", {{"name", "s-0"}, {"namespace", "ns"}, {"uid", "u-7"}}},
                       {"spec", spec},
                       {"status", {{"phase", "Pending"}}}};
    std::string problem;
    const auto read = TakeGroup(gang, "PodGang", rules_, groups_, problem);
    EXPECT_TRUE(read && *read) << gang;
    return problem;
  }
  [[nodiscard]] PodRequest Pod(const std::string& clique, Json labels = Json::object()) const {
    Json pod = test::PodWithGpus("u", 8);
    labels["grove.io/podgang"] = "s-0";
    labels["grove.io/podclique"] = clique;
    pod["metadata"]["labels"] = labels;
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules_);
    EXPECT_TRUE(observed) << pod;
    return observed ? observed->pod : PodRequest();
  }

  PodGroups groups_;
  const PodRules rules_{test::AllDialects(), DefaultConfig().resources, Levels(), &groups_};
};

TEST_F(PodGangTest, SaysHowManyOfEachCliqueStartTogether) {
  EXPECT_EQ(Put(Spec()), "");
  const PodRequest worker = Pod("s-0-worker");
  EXPECT_EQ(worker.gang.id.text(), "grove:ns/s-0");
  EXPECT_EQ(worker.gang.object, Gang::Object::kFound);
  EXPECT_EQ(worker.gang.minimum, 3);
  EXPECT_EQ(worker.gang.roles, (std::vector<GangRole>{{"s-0-leader", 1}, {"s-0-worker", 2}}));
  EXPECT_TRUE(worker.gang.has_roles);
  EXPECT_EQ(worker.role, "s-0-worker");
  EXPECT_TRUE(worker.gang.parts.empty());
  EXPECT_EQ(worker.domain, DomainAsk());
  EXPECT_EQ(worker.refusal, "");
}

TEST_F(PodGangTest, ThatIsNotThereIsWaitedForWhereTheyAreServed) {
  EXPECT_EQ(Pod("s-0-worker").gang.object, Gang::Object::kNotServed);
  groups_.Of(dialects::kPodGang).Reset({});
  EXPECT_EQ(Pod("s-0-worker").gang.object, Gang::Object::kMissing);
  EXPECT_EQ(Pod("s-0-worker").gang.controller.kind, "PodGang");
}

TEST_F(PodGangTest, LevelsAreThoseOfAllAndOfParts) {
  Json spec = Spec();
  spec["topologyConstraint"] = Pack("required", "b");
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("s-0-worker").domain.required, std::size_t{1});
  EXPECT_TRUE(Pod("s-0-worker").gang.parts.empty()) << "one domain for all is the pod's";
  spec["podgroups"][0]["topologyConstraint"] = Pack("required", "r");
  EXPECT_EQ(Put(spec), "");
  using Parts = std::vector<GangPart>;
  EXPECT_EQ(Pod("s-0-worker").gang.parts, (Parts{{{}, 1}, {{"s-0-worker"}, 2}}));
  EXPECT_EQ(Pod("s-0-worker").domain.required, std::size_t{2});
  EXPECT_EQ(Pod("s-0-leader").domain.required, std::size_t{1});
  EXPECT_EQ(Pod("s-0-other").domain.required, std::size_t{1});
  spec.erase("topologyConstraint");
  spec["topologyConstraintGroupConfigs"] = {{{"name", "s-0-all"},
                                             {"podGroupNames", {"s-0-worker", "s-0-leader"}},
                                             {"topologyConstraint", Pack("required", "b")}}};
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("s-0-worker").gang.parts,
            (Parts{{{"s-0-leader", "s-0-worker"}, 1}, {{"s-0-worker"}, 2}}));
  EXPECT_EQ(Pod("s-0-other").domain.required, std::nullopt);
  spec["podgroups"][0]["topologyConstraint"] = Pack("required", "z");
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("s-0-worker").domain.required, std::size_t{1}) << "a block is in a zone";
}

// The operator writes its narrowest level by itself.
TEST_F(PodGangTest, APreferredLevelThatIsNotKnownIsIgnored) {
  Json spec = Spec();
  spec["topologyConstraint"] = Pack("preferred", "kubernetes.io/hostname");
  spec["podgroups"][0]["topologyConstraint"] = Pack("preferred", "no-level");
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("s-0-worker").domain, DomainAsk());
  EXPECT_TRUE(Pod("s-0-worker").gang.parts.empty());
  spec["topologyConstraint"] = Pack("preferred", "r");
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("s-0-worker").domain.preferred, std::size_t{2});
}

TEST_F(PodGangTest, PreferredLevelsComeAfterRequiredOnes) {
  Json spec = Spec();
  spec["podgroups"][0]["topologyConstraint"] = {
      {"packConstraint", {{"required", "z"}, {"preferred", "r"}}}};
  spec["topologyConstraint"] = Pack("preferred", "b");
  EXPECT_EQ(Put(spec), "");
  using Parts = std::vector<GangPart>;
  EXPECT_EQ(Pod("s-0-worker").gang.parts,
            (Parts{{{"s-0-worker"}, 0}, {{}, 1, true}, {{"s-0-worker"}, 2, true}}));
  EXPECT_EQ(Pod("s-0-worker").domain.required, std::size_t{0});
  EXPECT_EQ(Pod("s-0-leader").domain.required, std::nullopt);
}

TEST_F(PodGangTest, TooManyPreferredLevelsAreIgnored) {
  Json spec = {{"podgroups", Json::array()}};
  for (int i = 0; i < 65; ++i) {
    spec["podgroups"].push_back({{"name", "c" + std::to_string(i)},
                                 {"minReplicas", 1},
                                 {"topologyConstraint", Pack("preferred", "r")}});
  }
  EXPECT_EQ(Put(spec), "");
  EXPECT_TRUE(Pod("c1").gang.parts.empty());
  spec["topologyConstraint"] = Pack("required", "b");
  EXPECT_EQ(Put(spec), "");
  EXPECT_EQ(Pod("c1").domain.required, std::size_t{1});
}

TEST_F(PodGangTest, WhatIsNotUnderstoodIsRefusedWithItsField) {
  Json spec = Spec();
  spec["podgroups"][0]["topologyConstraint"] = Pack("required", "kubernetes.io/hostname");
  const std::string why =
      "spec.podgroups.topologyConstraint.packConstraint.required: \"kubernetes.io/hostname\" is no "
      "topology level; want zone, block, rack or the node label of one";
  EXPECT_EQ(Put(spec), why);
  EXPECT_EQ(Pod("s-0-leader").refusal, "PodGang s-0: " + why);

  spec = Spec();
  spec["podgroups"][0]["minReplicas"] = 10'000;
  EXPECT_EQ(Put(spec), "spec.podgroups.minReplicas: want at most 10000 pods in all, got more");
}

TEST_F(PodGangTest, ANegativeMinimumIsRefusedBesideGoodOnesToo) {
  for (const bool has_level : {false, true}) {
    Json spec = Spec();
    spec["podgroups"][0]["minReplicas"] = -1;
    if (has_level) spec["podgroups"][0]["topologyConstraint"] = Pack("required", "r");
    EXPECT_EQ(Put(spec), "spec.podgroups.minReplicas: want 0 or more, got -1");
    EXPECT_NE(Pod("s-0-leader").refusal, "");
  }
}

TEST_F(PodGangTest, OfManyCliquesAllPodsStart) {
  for (const int count : {64, 65}) {
    Json spec = {{"podgroups", Json::array()}};
    for (int i = 0; i < count; ++i) {
      spec["podgroups"].push_back({{"name", "c" + std::to_string(i)}, {"minReplicas", 1}});
    }
    EXPECT_EQ(Put(spec), "");
    EXPECT_TRUE(Pod("c1").gang.has_roles);
    EXPECT_EQ(Pod("c1").gang.roles.size(), count == 64 ? 64U : 0U);
    spec["podgroups"][0]["topologyConstraint"] = Pack("required", "r");
    EXPECT_EQ(Put(spec), count == 64 ? ""
                                     : "spec.podgroups: want at most 64 where levels of their own "
                                       "are required, got 65")
        << "nobody could tell the parts from each other";
    EXPECT_EQ(Pod("c1").gang.parts.size(), count == 64 ? 1U : 0U);
  }
}

// Each pod keeps them.
TEST_F(PodGangTest, PartsNameABoundedNumberOfCliques) {
  for (const std::size_t count : {64U, 65U}) {
    Json spec = Spec();
    spec["topologyConstraintGroupConfigs"] = {
        {{"name", "c"},
         {"podGroupNames", Json(std::vector<std::string>(count, "s-0-worker"))},
         {"topologyConstraint", Pack("required", "b")}},
        {{"name", "d"},
         {"podGroupNames", Json(std::vector<std::string>(64, "s-0-worker"))},
         {"topologyConstraint", Pack("required", "r")}}};
    EXPECT_EQ(Put(spec) == "", count == 64);
    EXPECT_EQ(Pod("s-0-worker").gang.parts.size(), count == 64 ? 2U : 0U);
    EXPECT_EQ(Pod("s-0-worker").refusal == "", count == 64);
  }
}

TEST_F(PodGangTest, OtherWordsOfAPodComeFirst) {
  Put(Spec());
  EXPECT_EQ(Pod("s-0-worker", {{"scheduling.x-k8s.io/pod-group", "g"}}).gang.id.text(),
            "coscheduling:ns/g");
}

}  // namespace
}  // namespace berth::wire::pod_gang_test
