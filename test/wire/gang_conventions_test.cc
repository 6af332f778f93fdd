// SPDX-License-Identifier: Apache-2.0
//
// What each convention says of a gang: pods and PodGroups as their controllers write them, and what
// is read of them (docs/gangs.md#which-pods-are-a-gang).
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/dialects/groups/pod_group.h"
#include "server/dialects/groups/pod_group_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::gang_conventions_test {
namespace {

using test::Json;

const TopologyLevels& Levels() {
  static const TopologyLevels levels = {{"zone", {"z"}}, {"block", {"b"}}, {"rack", {"r"}}};
  return levels;
}

class GangConventionsTest : public ::testing::Test {
 protected:
  // A pod with GPUs in namespace "ns".
  [[nodiscard]] PodRequest Read(const Json& annotations, const Json& labels = Json::object(),
                                const Json& spec = Json::object()) const {
    Json pod = test::PodWithGpus("u", 8);
    pod["metadata"]["annotations"] = annotations;
    pod["metadata"]["labels"] = labels;
    pod["spec"].update(spec);
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules_);
    EXPECT_TRUE(observed) << pod;
    return observed ? observed->pod : PodRequest();
  }
  [[nodiscard]] std::string Refusal(const Json& annotations,
                                    const Json& labels = Json::object()) const {
    return Read(annotations, labels).refusal;
  }

  // The PodGroup "g" of namespace "ns", as the watch brings it. Returns what Berth says of it.
  std::string PutGroup(std::string_view convention, const Json& spec,
                       const Json& annotations = Json::object()) {
    const Json group = {
        {"kind", "PodGroup"},
        {"metadata", {{"name", "g"}, {"namespace", "ns"}, {"annotations", annotations}}},
        {"spec", spec}};
    std::string problem;
    auto read = dialects::DecodePodGroup(test::Padded(group.dump()), convention, Levels(), problem);
    EXPECT_TRUE(read) << group;
    if (read) groups_.Of(convention).Put(*std::move(read));
    return problem;
  }
  [[nodiscard]] PodRequest CoschedulingPod() const {
    return Read(Json::object(), {{"scheduling.x-k8s.io/pod-group", "g"}});
  }
  [[nodiscard]] PodRequest VolcanoPod() const {
    return Read({{"scheduling.k8s.io/group-name", "g"}});
  }
  [[nodiscard]] PodRequest NativePod() const {
    return Read(Json::object(), Json::object(), {{"schedulingGroup", {{"podGroupName", "g"}}}});
  }
  [[nodiscard]] PodRequest KaiPod() const { return Read({{"pod-group-name", "g"}}); }

  PodGroups groups_;
  const PodRules rules_{test::AllDialects(), DefaultConfig().resources, Levels(), &groups_};
};

TEST_F(GangConventionsTest, Berth) {
  PodRequest pod = Read({{"berth.dev/gang", "g"}, {"berth.dev/gang-size", "4"}});
  EXPECT_EQ(pod.gang, (Gang{.id = {"berth", "ns", "g"}, .minimum = 4, .total = 4}));
  pod = Read({{"berth.dev/gang", "g"},
              {"berth.dev/gang-size", "4"},
              {"berth.dev/gang-min", "3"},
              {"berth.dev/required-domain", "rack"}});
  EXPECT_EQ(pod.gang, (Gang{.id = {"berth", "ns", "g"}, .minimum = 3, .total = 4}));
  EXPECT_EQ(pod.domain.required, std::size_t{2});
  EXPECT_EQ(Read({{"berth.dev/gang", "g"}, {"berth.dev/gang-min", "3"}}).gang,
            (Gang{.id = {"berth", "ns", "g"}, .minimum = 3}));
}

TEST_F(GangConventionsTest, BerthRefusesSizesThatMakeNoSense) {
  using Said = std::map<std::string, std::string, std::less<>>;
  const auto problem = [](const Said& annotations) -> std::string {
    PodParts parts;
    parts.annotations = annotations;
    Gang gang;
    const Status read = dialects::ReadGang(parts, gang);
    EXPECT_EQ(gang.minimum, std::nullopt);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(problem({{"berth.dev/gang", "g"}}),
            "annotation berth.dev/gang-size: want a number of pods from 1 to 10000 beside "
            "berth.dev/gang, got none");
  for (const char* size : {"0", "-1", "10001", "four", "", "4.0"}) {
    EXPECT_EQ(problem({{"berth.dev/gang", "g"}, {"berth.dev/gang-size", size}}),
              "annotation berth.dev/gang-size: want a number of pods from 1 to 10000, got \"" +
                  std::string(size) + "\"");
  }
  EXPECT_EQ(problem({{"berth.dev/gang", ""}, {"berth.dev/gang-size", "2"}}),
            "annotation berth.dev/gang: want the gang's name beside berth.dev/gang-size, got \"\"");
  EXPECT_EQ(problem({{"berth.dev/gang", ""}, {"berth.dev/gang-min", "2"}}),
            "annotation berth.dev/gang: want the gang's name beside berth.dev/gang-min, got \"\"");
  EXPECT_EQ(problem({{"berth.dev/gang-size", "2"}}), "") << "nobody's gang";
  EXPECT_EQ(problem({{"berth.dev/gang", ""}}), "") << "it is in none, and says nothing else";
  EXPECT_EQ(
      problem({{"berth.dev/gang", "g"}, {"berth.dev/gang-size", "4"}, {"berth.dev/gang-min", "5"}}),
      "annotation berth.dev/gang-min: want at most the 4 of berth.dev/gang-size, got \"5\"");
}

// There is no way to say that a pod belongs to a gang of another namespace.
TEST_F(GangConventionsTest, AGangIsOfOneNamespace) {
  const Gang gang = Read({{"berth.dev/gang", "other/g"}, {"berth.dev/gang-size", "4"}}).gang;
  EXPECT_EQ(gang.id, (GangId{"berth", "ns", "other/g"}));
  EXPECT_NE(gang.id, (GangId{"berth", "other", "g"}));
}

TEST_F(GangConventionsTest, Coscheduling) {
  EXPECT_EQ(PutGroup("coscheduling", {{"minMember", 3},
                                      {"minResources", {{"nvidia.com/gpu", "24"}}},
                                      {"scheduleTimeoutSeconds", 30}}),
            "");
  const PodRequest pod = CoschedulingPod();
  EXPECT_EQ(pod.refusal, "");
  EXPECT_EQ(pod.gang, (Gang{.id = {"coscheduling", "ns", "g"},
                            .minimum = 3,
                            .object = Gang::Object::kFound,
                            .hold = std::chrono::seconds(30)}));
}

TEST_F(GangConventionsTest, NativeGroups) {
  EXPECT_EQ(PutGroup("kubernetes", {{"schedulingPolicy", {{"gang", {{"minCount", 3}}}}},
                                    {"disruptionMode", {{"all", Json::object()}}}}),
            "");
  EXPECT_EQ(NativePod().gang,
            (Gang{.id = {"kubernetes", "ns", "g"}, .minimum = 3, .object = Gang::Object::kFound}));
  EXPECT_EQ(PutGroup("kubernetes", {{"schedulingPolicy", {{"basic", Json::object()}}}}), "");
  EXPECT_EQ(NativePod().gang.minimum, 1) << "each may start alone";
}

TEST_F(GangConventionsTest, Volcano) {
  EXPECT_EQ(PutGroup("volcano", {{"minMember", 4},
                                 {"queue", "default"},
                                 {"minResources", {{"cpu", "4"}}},
                                 {"minTaskMember", {{"worker", 4}}}}),
            "");
  EXPECT_EQ(VolcanoPod().gang, (Gang{.id = {"volcano", "ns", "g"},
                                     .minimum = 4,
                                     .object = Gang::Object::kFound,
                                     .roles = {{"worker", 4}}}));
  EXPECT_EQ(Read({{"scheduling.volcano.sh/group-name", "g"}}).gang, VolcanoPod().gang);
  PutGroup("volcano", {{"minMember", 0}});
  EXPECT_EQ(VolcanoPod().gang.minimum, 1);
}

TEST_F(GangConventionsTest, MinimumsOfRolesAreTold) {
  using Roles = std::vector<GangRole>;
  PutGroup("volcano", {{"minMember", 4}, {"minTaskMember", {{"worker", 3}, {"master", 1}}}});
  EXPECT_TRUE(VolcanoPod().gang.has_roles);
  EXPECT_EQ(VolcanoPod().gang.roles, (Roles{{"master", 1}, {"worker", 3}}));
  PutGroup("volcano", {{"minMember", 3}, {"minTaskMember", {{"master", 1}, {"worker", 3}}}});
  EXPECT_FALSE(VolcanoPod().gang.has_roles) << "Volcano leaves them aside";
  EXPECT_EQ(VolcanoPod().gang.roles, Roles{});
  PutGroup("kai", {{"minMember", 2},
                   {"subGroups",
                    {{{"name", "all"}, {"minMember", 2}},
                     {{"name", "a"}, {"minMember", 1}, {"parent", "all"}},
                     {{"name", "b"}, {"minMember", 2}, {"parent", "all"}}}}});
  EXPECT_TRUE(KaiPod().gang.has_roles);
  EXPECT_EQ(KaiPod().gang.roles, (Roles{{"a", 1}, {"b", 2}})) << "no pod is of all";
}

// KAI's groups say either how many pods or how many subgroups they need.
TEST_F(GangConventionsTest, AGroupOfSubgroupsNeedsThemAll) {
  Json spec = {
      {"subGroups", {{{"name", "a"}, {"minMember", 1}}, {{"name", "b"}, {"minMember", 2}}}}};
  PutGroup("kai", spec);
  EXPECT_EQ(KaiPod().gang.minimum, 3);
  spec["minSubGroup"] = 2;
  PutGroup("kai", spec);
  EXPECT_EQ(KaiPod().gang.minimum, 3);
  EXPECT_EQ(KaiPod().refusal, "");
  spec["minSubGroup"] = 1;
  PutGroup("kai", spec);
  EXPECT_EQ(KaiPod().refusal,
            "PodGroup g: spec.minSubGroup: want all 2 subgroups, since Berth starts them together, "
            "got 1");
}

TEST_F(GangConventionsTest, PodsSayTheirRole) {
  EXPECT_EQ(Read({{"scheduling.k8s.io/group-name", "g"}, {"volcano.sh/task-spec", "worker"}}).role,
            "worker");
  EXPECT_EQ(Read({{"pod-group-name", "g"}}, {{"kai.scheduler/subgroup-name", "a"}}).role, "a");
  EXPECT_EQ(Read({{"pod-group-name", "g"}, {"volcano.sh/task-spec", "worker"}}).role, "");
  const std::string long_name(254, 'x');
  EXPECT_EQ(Read({{"scheduling.k8s.io/group-name", "g"}, {"volcano.sh/task-spec", long_name}}).role,
            "");
}

TEST_F(GangConventionsTest, OfTooManyRolesTheMinimumsAreNotKept) {
  for (const int count : {64, 65}) {
    Json tasks = Json::object();
    for (int i = 0; i < count; ++i) tasks["task" + std::to_string(i)] = 1;
    PutGroup("volcano", {{"minMember", 100}, {"minTaskMember", tasks}});
    EXPECT_TRUE(VolcanoPod().gang.has_roles) << "all of its pods have to start";
    EXPECT_EQ(VolcanoPod().gang.roles.size(), count == 64 ? 64U : 0U);
  }
  PutGroup("volcano",
           {{"minMember", 9}, {"minTaskMember", {{std::string(254, 'x'), 1}, {"b", 1}}}});
  EXPECT_TRUE(VolcanoPod().gang.roles.empty());
}

// Volcano's controller names a PodGroup on every pod that it looks after.
TEST_F(GangConventionsTest, AGroupThatSaysOneDoesNotHideOneThatSaysMore) {
  Json labels = {{"kueue.x-k8s.io/pod-group-name", "k"}};
  Json said = {{"kueue.x-k8s.io/pod-group-total-count", "4"},
               {"scheduling.k8s.io/group-name", "podgroup-uid-u"}};
  EXPECT_EQ(Read(said, labels).gang.id.text(), "kueue:ns/k");
  said["scheduling.k8s.io/group-name"] = "g";
  EXPECT_EQ(Read(said, labels).gang.id.text(), "kueue:ns/k");
  // What may start before all of its pods are there goes after the others.
  said["kueue.x-k8s.io/pod-group-fast-admission"] = "true";
  EXPECT_EQ(Read(said, labels).gang.id.text(), "volcano:ns/g");
  said.erase("scheduling.k8s.io/group-name");
  EXPECT_EQ(Read(said, labels).gang.id.text(), "kueue:ns/k");
  said = {{"gang.scheduling.koordinator.sh/name", "ko"},
          {"gang.scheduling.koordinator.sh/min-available", "1"},
          {"kueue.x-k8s.io/pod-group-total-count", "4"}};
  EXPECT_EQ(Read(said, labels).gang.id.text(), "kueue:ns/k");
}

TEST_F(GangConventionsTest, VolcanosSubgroupsAreRefused) {
  EXPECT_NE(PutGroup("volcano", {{"minMember", 4},
                                 {"subGroupPolicy", {{{"name", "a"}, {"subGroupSize", 2}}}}}),
            "");
  EXPECT_EQ(VolcanoPod().refusal,
            "PodGroup g: spec.subGroupPolicy: want none, since Berth places a group as one");
  PutGroup("volcano", {{"minMember", 4}, {"subGroupPolicy", Json::array()}});
  EXPECT_EQ(VolcanoPod().refusal, "");
  PutGroup("volcano",
           {{"minMember", 4}, {"networkTopology", {{"mode", "hard"}, {"highestTierName", "s"}}}});
  EXPECT_EQ(VolcanoPod().refusal,
            "PodGroup g: spec.networkTopology.highestTierName: want highestTierAllowed, since "
            "Berth knows tiers by their number");
}

TEST_F(GangConventionsTest, Kai) {
  EXPECT_EQ(PutGroup("kai", {{"minMember", 2},
                             {"queue", "team"},
                             {"topologyConstraint", {{"requiredTopologyLevel", "block"}}}}),
            "");
  EXPECT_EQ(KaiPod().gang,
            (Gang{.id = {"kai", "ns", "g"}, .minimum = 2, .object = Gang::Object::kFound}));
  EXPECT_EQ(KaiPod().domain.required, std::size_t{1});
  PutGroup("kai", {{"minMember", 2},
                   {"subGroups",
                    {{{"name", "a"},
                      {"minMember", 2},
                      {"topologyConstraint", {{"requiredTopologyLevel", "rack"}}}}}}});
  EXPECT_EQ(KaiPod().refusal,
            "PodGroup g: spec.subGroups.topologyConstraint.requiredTopologyLevel: want none, since "
            "Berth places a group as one, got \"rack\"");
}

TEST_F(GangConventionsTest, Koordinator) {
  const std::string prefix = "gang.scheduling.koordinator.sh/";
  Json said = {{prefix + "name", "g"},
               {prefix + "min-available", "3"},
               {prefix + "total-number", "5"},
               {prefix + "mode", "NonStrict"},
               {prefix + "match-policy", "waiting-and-running"},
               {prefix + "waiting-time", "1m30s"},
               {prefix + "groups", R"(["ns/g"])"}};
  EXPECT_EQ(Read(said).refusal, "");
  EXPECT_EQ(Read(said).gang, (Gang{.id = {"koordinator", "ns", "g"},
                                   .minimum = 3,
                                   .total = 5,
                                   .hold = std::chrono::seconds(90)}));
  Json wrong = said;
  wrong[prefix + "groups"] = R"(["ns/g", "ns/h"])";
  EXPECT_EQ(Refusal(wrong),
            "annotation gang.scheduling.koordinator.sh/groups: want [\"ns/g\"], since Berth does "
            "not support groups of gangs, got \"[\"ns/g\", \"ns/h\"]\"");
  wrong = said;
  wrong[prefix + "min-available"] = "6";
  EXPECT_EQ(Refusal(wrong),
            "annotation gang.scheduling.koordinator.sh/min-available: want at most the 5 of "
            "gang.scheduling.koordinator.sh/total-number, got \"6\"");
  wrong = said;
  wrong[prefix + "network-topology-spec"] = R"({"gatherStrategy":[{"strategy":"MustGather"}]})";
  EXPECT_NE(Refusal(wrong), "");
  wrong[prefix + "network-topology-spec"] = R"({"gatherStrategy":[{"strategy":"PreferGather"}]})";
  EXPECT_EQ(Refusal(wrong), "");
}

TEST_F(GangConventionsTest, KoordinatorsWaitingTimeIsADurationOfGo) {
  const auto hold = [this](const std::string& text) {
    const PodRequest pod = Read({{"gang.scheduling.koordinator.sh/name", "g"},
                                 {"gang.scheduling.koordinator.sh/min-available", "3"},
                                 {"gang.scheduling.koordinator.sh/waiting-time", text}});
    EXPECT_EQ(pod.refusal.empty(), pod.gang.minimum.has_value()) << text;
    return pod.refusal.empty() ? pod.gang.hold : std::nullopt;
  };
  EXPECT_EQ(hold("600s"), std::chrono::minutes(10));
  EXPECT_EQ(hold("1h"), std::chrono::hours(1));
  EXPECT_EQ(hold("1.5m"), std::chrono::seconds(90));
  EXPECT_EQ(hold("250ms"), std::chrono::milliseconds(250));
  for (const char* text : {"", "600", "s", "-1s", "1e3s", "1 h", "nan", "infs", "99999999h"}) {
    EXPECT_EQ(hold(text), std::nullopt) << text;
  }
  EXPECT_EQ(hold("0s"), std::nullopt) << "Koordinator's default";
}

TEST_F(GangConventionsTest, LightweightLabels) {
  const Json labels = {{"pod-group.scheduling.sigs.k8s.io/name", "g"},
                       {"pod-group.scheduling.sigs.k8s.io/min-available", "2"}};
  EXPECT_EQ(Read(Json::object(), labels).gang, (Gang{.id = {"labels", "ns", "g"}, .minimum = 2}));
  EXPECT_EQ(Refusal(Json::object(), {{"pod-group.scheduling.sigs.k8s.io/name", "g"},
                                     {"pod-group.scheduling.sigs.k8s.io/min-available", "0"}}),
            "label pod-group.scheduling.sigs.k8s.io/min-available: want a number of pods from 1 to "
            "10000, got \"0\"");
}

TEST_F(GangConventionsTest, KueuesPlainGroups) {
  const Json labels = {{"kueue.x-k8s.io/pod-group-name", "g"},
                       {"kueue.x-k8s.io/queue-name", "team"}};
  Json said = {{"kueue.x-k8s.io/pod-group-total-count", "4"}};
  EXPECT_EQ(Read(said, labels).gang, (Gang{.id = {"kueue", "ns", "g"}, .minimum = 4, .total = 4}));
  said["kueue.x-k8s.io/pod-group-fast-admission"] = "true";
  EXPECT_EQ(Read(said, labels).gang, (Gang{.id = {"kueue", "ns", "g"}, .minimum = 1, .total = 4}))
      << "its later pods may be made by its first";
  said["kueue.x-k8s.io/pod-group-fast-admission"] = "yes";
  EXPECT_EQ(Refusal(said, labels),
            "annotation kueue.x-k8s.io/pod-group-fast-admission: want true or false, got \"yes\"");
}

TEST_F(GangConventionsTest, APodGroupWhoseNumberMakesNoSenseRefusesItsPods) {
  for (const int size : {-1, 0, 10'001}) {
    const std::string problem =
        "spec.minMember: want a number of pods from 1 to 10000, got " + std::to_string(size);
    EXPECT_EQ(PutGroup("coscheduling", {{"minMember", size}}), problem);
    EXPECT_EQ(CoschedulingPod().refusal, "PodGroup g: " + problem);
  }
  EXPECT_EQ(PutGroup("coscheduling", {{"minMember", 10'000}}), "");
  EXPECT_EQ(CoschedulingPod().refusal, "");
  EXPECT_EQ(CoschedulingPod().gang.minimum, 10'000);
}

TEST_F(GangConventionsTest, AnUnknownTopologyLevelRefusesThePodGroupsPods) {
  const std::string problem =
      PutGroup("coscheduling", {{"minMember", 4}}, {{"berth.dev/required-domain", "row"}});
  EXPECT_NE(problem, "");
  EXPECT_EQ(CoschedulingPod().refusal, "PodGroup g: " + problem);
  EXPECT_NE(
      PutGroup("coscheduling", {{"minMember", 4}},
               {{"berth.dev/required-domain", "rack"}, {"berth.dev/preferred-domain", "row"}}),
      "");
  EXPECT_EQ(CoschedulingPod().refusal, "") << "what is preferred is done without";
  EXPECT_EQ(CoschedulingPod().domain.required, std::size_t{2});
  const Json soft = {{"minMember", 4},
                     {"networkTopology", {{"mode", "soft"}, {"highestTierAllowed", 9}}}};
  EXPECT_NE(PutGroup("volcano", soft), "");
  EXPECT_EQ(VolcanoPod().refusal, "");
}

// It is kube-scheduler's to place, and another one's to complain about.
TEST_F(GangConventionsTest, APodWithoutGpusIsNotRefused) {
  PutGroup("coscheduling", {{"minMember", -1}});
  Json pod = test::PodWithGpus("u", 1);
  pod["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "1"}}}};
  pod["metadata"]["labels"] = {{"scheduling.x-k8s.io/pod-group", "g"}};
  EXPECT_EQ(DecodeObservedPod(test::Padded(pod.dump()), rules_)->pod.refusal, "");
}

}  // namespace
}  // namespace berth::wire::gang_conventions_test
