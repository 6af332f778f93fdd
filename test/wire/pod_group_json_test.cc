// SPDX-License-Identifier: Apache-2.0
//
// PodGroup objects, and what the pods of such a group are taken to ask.
#include "server/dialects/groups/pod_group_json.h"

#include <gtest/gtest.h>

#include "server/dialects/groups/pod_group.h"
#include "server/wire/pod/pod_rules.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_group_json_test {
namespace {

using dialects::DecodePodGroup;
using dialects::kCoscheduling;
using dialects::kKai;
using dialects::kKubernetes;
using dialects::kVolcano;
using test::Json;

const TopologyLevels& Levels() {
  static const TopologyLevels levels = {{"zone", {"z"}}, {"block", {"b"}}, {"rack", {"r"}}};
  return levels;
}

DomainAsk Required(std::size_t level) {
  DomainAsk ask;
  ask.required = level;
  return ask;
}
DomainAsk Preferred(std::size_t level) {
  DomainAsk ask;
  ask.preferred = level;
  return ask;
}

Json Group(const Json& spec, const Json& annotations = Json::object()) {
  return {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
          {"kind", "PodGroup"},
          {"metadata", {{"name", "g"}, {"namespace", "ns"}, {"annotations", annotations}}},
          {"spec", spec}};
}

struct Read {
  Result<PodGroup> group;
  std::string problem;
};
Read Decode(const Json& group, std::string_view api) {
  Read read;
  read.group = DecodePodGroup(test::Padded(group.dump()), api, Levels(), read.problem);
  return read;
}
PodGroup Sound(const Json& group, std::string_view api) {
  const Read read = Decode(group, api);
  EXPECT_TRUE(read.group) << group;
  EXPECT_EQ(read.problem, "");
  return read.group.value_or(PodGroup());
}

TEST(PodGroupJson, EveryApiHasItsFieldForTheSize) {
  for (const std::string_view api : {kCoscheduling, kVolcano, kKai}) {
    EXPECT_EQ(Sound(Group({{"minMember", 4}}), api), (PodGroup{"ns", "g", 4, {}}));
    EXPECT_EQ(Sound(Group(Json::object()), api).min_members, 1);
  }
  const Json gang = {{"schedulingPolicy", {{"gang", {{"minCount", 4}}}}}};
  EXPECT_EQ(Sound(Group(gang), kKubernetes).min_members, 4);
  const Json basic = {{"schedulingPolicy", {{"basic", Json::object()}}}, {"minMember", 4}};
  EXPECT_EQ(Sound(Group(basic), kKubernetes).min_members, 1);
}

TEST(PodGroupJson, AGroupThatSaysOneOrNothingStartsPodByPod) {
  EXPECT_EQ(Sound(Group({{"minMember", 1}}), kCoscheduling).min_members, 1);
  EXPECT_EQ(Sound(Group({{"minMember", 0}}), kVolcano).min_members, 1);
}

TEST(PodGroupJson, AnnotationsOfPodsMayBeOnTheGroup) {
  const DomainAsk rack = Required(2);
  for (const Json& annotations : {Json{{"berth.dev/required-domain", "rack"}},
                                  Json{{"kueue.x-k8s.io/podset-required-topology", "r"}},
                                  Json{{"kai.scheduler/topology-required-placement", "rack"}},
                                  Json{{"volcano.sh/network-topology-mode", "hard"},
                                       {"volcano.sh/network-topology-highest-tier", "1"}}}) {
    EXPECT_EQ(Sound(Group(Json::object(), annotations), kCoscheduling).domain, rack) << annotations;
  }
}

TEST(PodGroupJson, VolcanoAndKaiHaveFieldsForIt) {
  const Json hard = {{"networkTopology", {{"mode", "hard"}, {"highestTierAllowed", 2}}}};
  EXPECT_EQ(Sound(Group(hard), kVolcano).domain, Required(1));
  EXPECT_EQ(Sound(Group(hard), kCoscheduling).domain, DomainAsk()) << "no such field there";
  const Json soft = {{"networkTopology", {{"mode", "soft"}, {"highestTierAllowed", 1}}}};
  EXPECT_EQ(Sound(Group(soft), kVolcano).domain, Preferred(2));
  const Json kai = {
      {"topologyConstraint",
       {{"topology", "t"}, {"requiredTopologyLevel", "block"}, {"preferredTopologyLevel", "r"}}}};
  DomainAsk both = Required(1);
  both.preferred = 2;
  EXPECT_EQ(Sound(Group(kai), kKai).domain, both);
  const Json native = {
      {"schedulingConstraints", {{"topology", Json::array({{{"key", "nowhere"}}})}}}};
  EXPECT_EQ(Sound(Group(native), kKubernetes).domain, DomainAsk()) << "kube-scheduler sees to it";
}

TEST(PodGroupJson, ALevelThatIsNotConfiguredIsToldAndTheSizeStands) {
  const Read read =
      Decode(Group({{"minMember", 4}}, {{"berth.dev/required-domain", "row"}}), kCoscheduling);
  ASSERT_TRUE(read.group);
  EXPECT_EQ(read.group->min_members, 4);
  EXPECT_EQ(read.group->domain, DomainAsk());
  EXPECT_EQ(read.group->refusal, read.problem) << "it is required";
  EXPECT_EQ(
      read.problem,
      "annotation berth.dev/required-domain: \"row\" is no topology level; want zone, block, rack "
      "or the node label of one");
  const Json tier = {{"networkTopology", {{"mode", "hard"}, {"highestTierAllowed", 4}}}};
  EXPECT_EQ(Decode(Group(tier), kVolcano).problem,
            "annotation volcano.sh/network-topology-highest-tier: want a number from 1 to 3, got "
            "\"4\"");
}

TEST(PodGroupJson, WhatIsNoPodGroupIsAnError) {
  const auto message = [](const Json& group) {
    const Read read = Decode(group, kCoscheduling);
    return read.group ? "" : read.group.error().message;
  };
  Json group = Group(Json::object());
  group["kind"] = "Pod";
  EXPECT_EQ(message(group), "kind: want PodGroup, got \"Pod\"");
  group = Group(Json::object());
  group["metadata"].erase("name");
  EXPECT_EQ(message(group), "metadata.name: want a name, got \"\"");
  EXPECT_NE(message(Group({{"minMember", "four"}})), "");
  EXPECT_NE(message(Json::array()), "");
}

class PodGroupsTest : public ::testing::Test {
 protected:
  PodGroupsTest() { pod_.id = {"u", "ns", "p"}; }

  [[nodiscard]] PodRequest Read() const { return rules_.ToRequest(pod_); }
  [[nodiscard]] Gang ReadGang() const { return Read().gang; }

  PodGroups groups_;
  const PodRules rules_{test::AllDialects(), DefaultConfig().resources, Levels(), &groups_};
  PodParts pod_;
};

TEST_F(PodGroupsTest, TellWhatThePodDoesNotSay) {
  pod_.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  groups_.Of(kCoscheduling).Put({"ns", "g", 4, Required(1)});
  EXPECT_EQ(ReadGang().minimum, 4);
  EXPECT_EQ(ReadGang().total, std::nullopt);
  EXPECT_EQ(Read().domain, Required(1));
  pod_.annotations["berth.dev/preferred-domain"] = "rack";
  EXPECT_EQ(Read().domain, Preferred(2)) << "what the pod says counts";
  pod_.id.namespace_name = "elsewhere";
  EXPECT_EQ(ReadGang().minimum, std::nullopt);
  EXPECT_EQ(ReadGang().id.text(), "coscheduling:elsewhere/g");
}

TEST_F(PodGroupsTest, AGroupOfOneConventionHasNothingToSayToPodsOfAnother) {
  for (const std::string_view convention : {kVolcano, kCoscheduling, kKubernetes, kKai}) {
    groups_.Of(convention).Put({"ns", "g", 9, Required(1)});
  }
  pod_.annotations = {{"gang.scheduling.koordinator.sh/name", "g"},
                      {"gang.scheduling.koordinator.sh/min-available", "3"}};
  EXPECT_EQ(Read().gang, (Gang{.id = {"koordinator", "ns", "g"}, .minimum = 3}));
  EXPECT_EQ(Read().domain, DomainAsk());
  pod_.annotations = {{"kueue.x-k8s.io/pod-group-total-count", "6"}};
  pod_.labels = {{"kueue.x-k8s.io/pod-group-name", "g"}};
  EXPECT_EQ(ReadGang(), (Gang{.id = {"kueue", "ns", "g"}, .minimum = 6, .total = 6}));
  groups_.Of(kKai).Put({"ns", "g", 2, {}});
  pod_.labels = {};
  pod_.annotations = {{"pod-group-name", "g"}};
  EXPECT_EQ(ReadGang().minimum, 2) << "its own";
}

TEST_F(PodGroupsTest, NoObjectAndAnObjectThatSaysOneDiffer) {
  pod_.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(ReadGang().object, Gang::Object::kNotServed) << "nobody has listed any";
  PodGroupTable& table = groups_.Of(kCoscheduling);
  table.Reset({});
  EXPECT_EQ(ReadGang().object, Gang::Object::kMissing);
  EXPECT_EQ(ReadGang().minimum, std::nullopt);
  table.Put({"ns", "g", 1, {}});
  EXPECT_EQ(ReadGang().object, Gang::Object::kFound);
  EXPECT_EQ(ReadGang().minimum, 1);
  EXPECT_EQ(ReadGang().size(), 0) << "how many there will be is not known all the same";
  table.NotServed();
  EXPECT_EQ(ReadGang().object, Gang::Object::kNotServed);
}

TEST_F(PodGroupsTest, AGangThatWasReadEarlierIsBroughtUpToDate) {
  pod_.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  groups_.Of(kCoscheduling).Put({"ns", "g", 4, {}});
  Gang gang = ReadGang();
  std::uint64_t seen = groups_.changes();
  groups_.Of(kCoscheduling).Put({"ns", "g", 2, {}});
  EXPECT_GT(groups_.changes(), seen) << "it shrinks";
  groups_.Update(gang);
  EXPECT_EQ(gang.minimum, 2);
  seen = groups_.changes();
  groups_.Of(kCoscheduling).Remove("ns", "g");
  EXPECT_GT(groups_.changes(), seen) << "it vanishes";
  groups_.Update(gang);
  EXPECT_EQ(gang.minimum, std::nullopt);
  EXPECT_EQ(gang.object, Gang::Object::kMissing);
  seen = groups_.changes();
  groups_.Of(kCoscheduling).Remove("ns", "g");
  EXPECT_EQ(groups_.changes(), seen);
}

TEST(PodGroups, AreReplacedRemovedAndReset) {
  const Gang kGang = {.id = GangId::Of("kai:ns/g"), .object = Gang::Object::kMissing};
  PodGroups groups;
  PodGroupTable& table = groups.Of(kKai);
  table.Put({"ns", "g", 4, {}});
  table.Put({"ns", "g", 5, {}});
  EXPECT_EQ(groups.Find(kGang)->min_members, 5);
  table.Remove("ns", "other");
  table.Remove("ns", "g");
  EXPECT_FALSE(groups.Find(kGang));
  table.Put({"ns", "old", 4, {}});
  table.Reset({{"ns", "g", 2, {}}, {"ns", "g", 3, {}}});
  EXPECT_FALSE(groups.Find({.id = {"kai", "ns", "old"}, .object = Gang::Object::kMissing}));
  EXPECT_EQ(groups.Find(kGang)->min_members, 3);
}

}  // namespace
}  // namespace berth::wire::pod_group_json_test
