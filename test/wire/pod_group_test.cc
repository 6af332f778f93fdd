// SPDX-License-Identifier: Apache-2.0
//
// Groups and levels as each scheduler writes them on its pods.
#include "server/dialects/groups/pod_group.h"

#include <string>

#include <gtest/gtest.h>

#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_group_test {
namespace {

using test::Json;

constexpr char kLabels[] = "labels", kAnnotations[] = "annotations";

PodRequest Read(const Json& pod) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources,
                              {{"zone", {"z"}}, {"block", {"b", "old/b"}}, {"rack", {"r"}}});
  PaddedText text = test::Padded(Json{{"Pod", pod}, {"NodeNames", Json::array()}}.dump());
  auto args = DecodeExtenderArgs(text, rules, NodeNameTable(std::vector<std::string>()));
  EXPECT_TRUE(args && args->pod) << pod;
  return *args->pod;
}

Json With(const Json& labels, const Json& annotations) {
  Json pod = test::PodWithGpus("u", 1);
  pod["metadata"][kLabels] = labels;
  pod["metadata"][kAnnotations] = annotations;
  return pod;
}
PodRequest Annotated(const Json& annotations) { return Read(With(Json::object(), annotations)); }

std::string Refusal(const Json& annotations) { return Annotated(annotations).refusal; }

TEST(PodGroup, EveryConventionNamesItsGroupAndSomeTheirSize) {
  constexpr Gang::Object kNone = Gang::Object::kNone, kNotServed = Gang::Object::kNotServed;
  const struct {
    Json labels, annotations;
    std::string gang;
    std::optional<int> minimum, total;
    Gang::Object object = kNone;
  } cases[] = {
      {Json::object(), Json::object(), "", {}, {}},
      {{{"scheduling.x-k8s.io/pod-group", "g"}},
       Json::object(),
       "coscheduling:ns/g",
       {},
       {},
       kNotServed},
      {Json::object(), {{"scheduling.k8s.io/group-name", "g"}}, "volcano:ns/g", {}, {}, kNotServed},
      {Json::object(),
       {{"scheduling.volcano.sh/group-name", "g"}},
       "volcano:ns/g",
       {},
       {},
       kNotServed},
      {Json::object(),
       {{"gang.scheduling.koordinator.sh/name", "g"},
        {"gang.scheduling.koordinator.sh/min-available", "3"}},
       "koordinator:ns/g",
       3,
       {}},
      {Json::object(),
       {{"gang.scheduling.koordinator.sh/name", "g"},
        {"gang.scheduling.koordinator.sh/min-available", "3"},
        {"gang.scheduling.koordinator.sh/total-number", "5"}},
       "koordinator:ns/g",
       3,
       5},
      {{{"pod-group.scheduling.sigs.k8s.io/name", "g"},
        {"pod-group.scheduling.sigs.k8s.io/min-available", "2"}},
       Json::object(),
       "labels:ns/g",
       2,
       {}},
      {{{"kueue.x-k8s.io/pod-group-name", "g"}},
       {{"kueue.x-k8s.io/pod-group-total-count", "8"}},
       "kueue:ns/g",
       8,
       8},
      {Json::object(),
       {{"kueue.x-k8s.io/pod-group-name", "g"}, {"kueue.x-k8s.io/pod-group-total-count", "8"}},
       "kueue:ns/g",
       8,
       8},
      {Json::object(), {{"pod-group-name", "g"}}, "kai:ns/g", {}, {}, kNotServed},
      // The first in the order of pod_group.h.
      {{{"scheduling.x-k8s.io/pod-group", "first"}, {"kueue.x-k8s.io/pod-group-name", "last"}},
       {{"scheduling.k8s.io/group-name", "second"}, {"kueue.x-k8s.io/pod-group-total-count", "8"}},
       "coscheduling:ns/first",
       {},
       {},
       kNotServed},
  };
  for (const auto& c : cases) {
    const PodRequest pod = Read(With(c.labels, c.annotations));
    EXPECT_EQ(pod.gang.id.text(), c.gang) << c.labels << c.annotations;
    EXPECT_EQ(pod.gang.minimum, c.minimum) << c.labels << c.annotations;
    EXPECT_EQ(pod.gang.total, c.total) << c.labels << c.annotations;
    EXPECT_EQ(pod.gang.object, c.object) << c.labels << c.annotations;
    EXPECT_EQ(pod.refusal, "") << c.labels << c.annotations;
  }
}

TEST(PodGroup, ASizeThatIsNoNumberIsRefusedWithItsKey) {
  for (const char* size : {"", "0", "-1", "two", "1.5", "99999999999"}) {
    EXPECT_EQ(Refusal({{"kueue.x-k8s.io/pod-group-name", "g"},
                       {"kueue.x-k8s.io/pod-group-total-count", size}}),
              "annotation kueue.x-k8s.io/pod-group-total-count: want a number of pods from 1 to "
              "10000, got \"" +
                  std::string(size) + "\"");
  }
  EXPECT_EQ(Read(With({{"pod-group.scheduling.sigs.k8s.io/name", "g"},
                       {"pod-group.scheduling.sigs.k8s.io/min-available", "x"}},
                      Json::object()))
                .refusal,
            "label pod-group.scheduling.sigs.k8s.io/min-available: want a number of pods from 1 to "
            "10000, "
            "got \"x\"");
  // Without the group that it belongs to it says nothing.
  EXPECT_EQ(Refusal({{"kueue.x-k8s.io/pod-group-total-count", "x"}}), "");
}

TEST(PodGroup, LevelsAreReadInTheWordsOfEachScheduler) {
  const struct {
    Json annotations;
    DomainAsk ask;
  } cases[] = {
      {Json::object(), {}},
      {{{"berth.dev/required-domain", "rack"}}, {2, {}, false}},
      {{{"berth.dev/required-domain", "old/b"}}, {1, {}, false}},
      {{{"berth.dev/required-domain", "zone"}, {"berth.dev/preferred-domain", "rack"}},
       {0, 2, false}},
      {{{"kueue.x-k8s.io/podset-required-topology", "r"}}, {2, {}, false}},
      {{{"kueue.x-k8s.io/podset-preferred-topology", "b"}}, {{}, 1, false}},
      {{{"kueue.x-k8s.io/podset-unconstrained-topology", "true"}}, {{}, {}, true}},
      {{{"kueue.x-k8s.io/podset-unconstrained-topology", "false"}}, {}},
      {{{"kai.scheduler/topology", "any"},
        {"kai.scheduler/topology-required-placement", "b"},
        {"kai.scheduler/topology-preferred-placement", "r"}},
       {1, 2, false}},
      {{{"volcano.sh/network-topology-mode", "hard"},
        {"volcano.sh/network-topology-highest-tier", "1"}},
       {2, {}, false}},
      {{{"volcano.sh/network-topology-highest-tier", "3"}}, {0, {}, false}},
      {{{"volcano.sh/network-topology-mode", "soft"},
        {"volcano.sh/network-topology-highest-tier", "2"}},
       {{}, 1, false}},
      {{{"volcano.sh/network-topology-mode", "hard"}}, {}},
      // Our own word is the last.
      {{{"berth.dev/preferred-domain", "rack"},
        {"kueue.x-k8s.io/podset-required-topology", "b"},
        {"kai.scheduler/topology-required-placement", "x"}},
       {{}, 2, false}},
  };
  for (const auto& c : cases) {
    const PodRequest pod = Annotated(c.annotations);
    EXPECT_EQ(pod.refusal, "") << c.annotations;
    EXPECT_EQ(pod.domain, c.ask) << c.annotations;
  }
}

TEST(PodGroup, ALevelThatIsNotConfiguredIsRefusedWithItsKey) {
  for (const char* key :
       {"berth.dev/required-domain", "berth.dev/preferred-domain",
        "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology",
        "kai.scheduler/topology-required-placement",
        "kai.scheduler/topology-preferred-placement"}) {
    for (const char* value : {"row", "", "Rack"}) {
      EXPECT_EQ(Refusal({{key, value}}),
                "annotation " + std::string(key) + ": \"" + value +
                    "\" is no topology level; want zone, block, rack or the node label of one");
    }
  }
}

TEST(PodGroup, WhatCannotBeReadIsRefusedWithItsKey) {
  const std::pair<Json, const char*> cases[] = {
      {{{"kueue.x-k8s.io/podset-unconstrained-topology", "yes"}},
       "annotation kueue.x-k8s.io/podset-unconstrained-topology: want true or false, got \"yes\""},
      {{{"volcano.sh/network-topology-mode", "firm"}},
       "annotation volcano.sh/network-topology-mode: want hard or soft, got \"firm\""},
      {{{"volcano.sh/network-topology-highest-tier", "4"}},
       "annotation volcano.sh/network-topology-highest-tier: want a number from 1 to 3, got \"4\""},
      {{{"kueue.x-k8s.io/podset-slice-required-topology", "r"},
        {"kueue.x-k8s.io/podset-slice-size", "2"}},
       "annotation kueue.x-k8s.io/podset-slice-required-topology: want a node selector from Kueue "
       "beside it, got none; Berth places no slices"},
  };
  for (const auto& [annotations, refusal] : cases) EXPECT_EQ(Refusal(annotations), refusal);
}

TEST(PodGroup, WhereKueueHasPlacedThePodItsWishesAreFulfilled) {
  const Json wishes = {{"kueue.x-k8s.io/podset-required-topology", "cloud/unheard-of"},
                       {"kueue.x-k8s.io/podset-slice-size", "2"}};
  Json pod = With(Json::object(), wishes);
  EXPECT_NE(Read(pod).refusal, "");
  for (const char* key : {"r", "old/b", "kubernetes.io/hostname", "cloud/unheard-of"}) {
    pod["spec"]["nodeSelector"] = {{key, "x"}};
    EXPECT_EQ(Read(pod).refusal, "") << key;
    EXPECT_EQ(Read(pod).domain, DomainAsk()) << key;
  }
  pod["spec"]["nodeSelector"] = {{"disk", "ssd"}};
  EXPECT_NE(Read(pod).refusal, "");
}

TEST(PodGroup, HonoursKueuesPlacementByAnUnknownLabel) {
  for (const auto& [key, value] :
       {std::pair("kueue.x-k8s.io/podset-slice-required-topology", "cloud/unheard-of"),
        std::pair("kueue.x-k8s.io/podset-slice-required-topology-constraints",
                  R"([{"topology":"cloud/unheard-of","size":4}])")}) {
    Json pod = With(Json::object(), {{key, value}});
    EXPECT_NE(Read(pod).refusal, "") << key;
    pod["spec"]["nodeSelector"] = {{"cloud/unheard-of", "x"}};
    EXPECT_EQ(Read(pod).refusal, "") << key;
    pod["spec"]["nodeSelector"] = {{"unheard-of", "x"}};
    EXPECT_NE(Read(pod).refusal, "") << key;
  }
}

TEST(PodGroup, WhatIsWrongWithAGroupRefusesPodsWithGpusAlone) {
  for (const Json& annotations :
       {Json{{"berth.dev/required-domain", "nowhere"}}, Json{{"berth.dev/gang", "g"}},
        Json{{"kueue.x-k8s.io/podset-required-topology", "nowhere"}},
        Json{{"kueue.x-k8s.io/pod-group-name", "g"},
             {"kueue.x-k8s.io/pod-group-total-count", "many"}},
        Json{{"volcano.sh/network-topology-mode", "firm"}}}) {
    Json pod = test::PodAsking("u", {{"cpu", "1"}});
    pod["metadata"][kAnnotations] = annotations;
    EXPECT_EQ(Read(pod).refusal, "") << annotations;
    EXPECT_EQ(Read(pod).domain, DomainAsk()) << annotations;
    pod["spec"] = test::PodWithGpus("u", 1)["spec"];
    EXPECT_NE(Read(pod).refusal, "") << annotations;
  }
}

TEST(PodGroup, WithoutLevelsNoPodCanAskForOne) {
  const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  PodParts parts;
  parts.annotations["berth.dev/required-domain"] = "rack";
  parts.containers.push_back({"m", ContainerKind::kMain, {.gpus = 1}});
  EXPECT_EQ(rules.ToRequest(parts).refusal,
            "annotation berth.dev/required-domain: \"rack\" is no topology level; no "
            "topology.levels are configured");
}

}  // namespace
}  // namespace berth::wire::pod_group_test
