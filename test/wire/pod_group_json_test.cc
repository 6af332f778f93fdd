// SPDX-License-Identifier: Apache-2.0
//
// PodGroup objects, and what the pods of such a group are taken to ask.
#include "server/dialects/groups/pod_group_json.h"

#include <gtest/gtest.h>

#include "server/wire/pod_rules.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire {
namespace {

using dialects::DecodePodGroup;
using enum PodGroupApi;
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
Read Decode(const Json& group, PodGroupApi api) {
  Read read;
  read.group = DecodePodGroup(test::Padded(group.dump()), api, Levels(), read.problem);
  return read;
}
PodGroup Sound(const Json& group, PodGroupApi api) {
  const Read read = Decode(group, api);
  EXPECT_TRUE(read.group) << group;
  EXPECT_EQ(read.problem, "");
  return read.group.value_or(PodGroup());
}

TEST(PodGroupJson, EveryApiHasItsFieldForTheSize) {
  for (const PodGroupApi api : {kCoscheduling, kVolcano, kKai}) {
    EXPECT_EQ(Sound(Group({{"minMember", 4}}), api), (PodGroup{"ns", "g", 4, {}}));
    EXPECT_EQ(Sound(Group(Json::object()), api).min_members, 0);
  }
  const Json gang = {{"schedulingPolicy", {{"gang", {{"minCount", 4}}}}}};
  EXPECT_EQ(Sound(Group(gang), kKubernetes).min_members, 4);
  const Json basic = {{"schedulingPolicy", {{"basic", Json::object()}}}, {"minMember", 4}};
  EXPECT_EQ(Sound(Group(basic), kKubernetes).min_members, 0);
}

TEST(PodGroupJson, OneAtLeastTellsNothing) {
  EXPECT_EQ(Sound(Group({{"minMember", 1}}), kCoscheduling).min_members, 0);
  EXPECT_EQ(Sound(Group({{"minMember", 0}}), kVolcano).min_members, 0);
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
  EXPECT_EQ(*read.group, (PodGroup{"ns", "g", 4, {}}));
  EXPECT_EQ(
      read.problem,
      "annotation berth.dev/required-domain: want a topology level (zone, block, rack) or the "
      "node label of one, got \"row\"");
  const Json tier = {{"networkTopology", {{"mode", "hard"}, {"highestTierAllowed", 4}}}};
  EXPECT_EQ(Decode(Group(tier), kVolcano).problem,
            "annotation volcano.sh/network-topology-highest-tier: want a number from 1 to 3, got "
            "\"4\"");
}

TEST(PodGroupJson, WhatIsNoPodGroupIsAnError) {
  const auto message = [](const Json& group, PodGroupApi api = kCoscheduling) {
    const Read read = Decode(group, api);
    return read.group ? "" : read.group.error().message;
  };
  EXPECT_EQ(message(Group({{"minMember", -1}})), "spec.minMember: want a number of pods, got -1");
  EXPECT_EQ(message(Group({{"schedulingPolicy", {{"gang", {{"minCount", 3'000'000'000}}}}}}),
                    kKubernetes),
            "spec.schedulingPolicy.gang.minCount: want a number of pods, got 3000000000");
  Json group = Group(Json::object());
  group["kind"] = "Pod";
  EXPECT_EQ(message(group), "kind: want PodGroup, got \"Pod\"");
  group = Group(Json::object());
  group["metadata"].erase("name");
  EXPECT_EQ(message(group), "metadata.name: want a name, got \"\"");
  EXPECT_NE(message(Group({{"minMember", "four"}})), "");
  EXPECT_NE(message(Json::array()), "");
}

TEST(PodGroups, TellWhatThePodDoesNotSay) {
  PodGroups groups;
  const PodRules rules(test::AllDialects(), DefaultConfig().resources, Levels(), &groups);
  PodParts pod;
  pod.id = {"u", "ns", "p"};
  pod.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(rules.ToRequest(pod).gang_size, 0) << "the group comes after its pod";
  groups.Of(kVolcano).Put({"ns", "g", 9, {}});
  groups.Of(kCoscheduling).Put({"ns", "g", 4, Required(1)});
  EXPECT_EQ(rules.ToRequest(pod).gang_size, 4) << "the first API counts";
  EXPECT_EQ(rules.ToRequest(pod).domain, Required(1));
  pod.annotations["berth.dev/preferred-domain"] = "rack";
  EXPECT_EQ(rules.ToRequest(pod).domain, Preferred(2)) << "what the pod says counts";
  pod.annotations["kueue.x-k8s.io/pod-group-total-count"] = "6";
  pod.labels = {{"kueue.x-k8s.io/pod-group-name", "g"}};
  EXPECT_EQ(rules.ToRequest(pod).gang_size, 6);
  pod.id.namespace_name = "elsewhere";
  pod.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(rules.ToRequest(pod).gang_size, 0);
}

TEST(PodGroups, AreReplacedRemovedAndReset) {
  PodGroups groups;
  PodGroupTable& table = groups.Of(kKai);
  table.Put({"ns", "g", 4, {}});
  table.Put({"ns", "g", 5, {}});
  EXPECT_EQ(groups.Find("ns/g")->min_members, 5);
  table.Remove("ns", "other");
  table.Remove("ns", "g");
  EXPECT_FALSE(groups.Find("ns/g"));
  table.Put({"ns", "old", 4, {}});
  table.Reset({{"ns", "g", 2, {}}, {"ns", "g", 3, {}}});
  EXPECT_FALSE(groups.Find("ns/old"));
  EXPECT_EQ(groups.Find("ns/g")->min_members, 3);
}

}  // namespace
}  // namespace berth::wire
