// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::plan_request_test {
namespace {

using test::Json;
using test::PodWithGpus;

const PodRules& PlanRules() {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return rules;
}

const NodeRules& PlanNodes() {
  static const NodeRules rules(DefaultConfig(), test::AllDialects());
  return rules;
}

// The body of a request about these objects.
template <class... Objects>
std::string BodyWith(const Objects&... objects) {
  Json body;
  body["pods"] = Json::array();
  (body["pods"].push_back(objects), ...);
  return body.dump();
}
template <class... Objects>
PlanRequest Read(const Objects&... objects) {
  auto plan = DecodePlan(BodyWith(objects...), PlanRules(), PlanNodes());
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? *std::move(plan) : PlanRequest();
}
std::string ErrorIn(const std::string& text) {
  const auto plan = DecodePlan(text, PlanRules(), PlanNodes());
  EXPECT_FALSE(plan) << text;
  return plan ? "" : plan.error().message;
}
std::string ErrorOf(const Json& object) { return ErrorIn(BodyWith(object)); }

// An owner of pods of two GPUs.
Json Owner(const std::string& kind, const Json& spec) {
  Json owner = {{"kind", kind}, {"metadata", {{"name", "w"}, {"namespace", "team"}}}};
  owner["spec"] = spec;
  owner["spec"]["template"] = {{"metadata", {{"labels", {{"app", "w"}}}}},
                               {"spec", PodWithGpus("x", 2)["spec"]}};
  return owner;
}

std::vector<std::string> NamesOf(const PlanRequest& plan) {
  std::vector<std::string> names;
  for (const PodRequest& pod : plan.pods) names.push_back(pod.id.full_name());
  return names;
}
using Names = std::vector<std::string>;

TEST(PlanRequests, APodIsAskedAboutUnderItsNameAndWithAUidOfItsOwn) {
  const PlanRequest plan = Read(PodWithGpus("1", 2), PodWithGpus("1", 4));
  EXPECT_EQ(NamesOf(plan), (Names{"ns/pod-1", "ns/pod-1"}));
  EXPECT_NE(plan.pods[0].id.uid, plan.pods[1].id.uid);
  EXPECT_EQ(plan.pods[1].shape.gpu_count(), 4);
  EXPECT_EQ(plan.sources[1].what, "Pod ns/pod-1");
}

TEST(PlanRequests, APodWithoutANameOrNamespaceGetsThem) {
  const Json pod = {{"spec", PodWithGpus("x", 1)["spec"]}};
  EXPECT_EQ(NamesOf(Read(pod, pod)), (Names{"default/pod-0", "default/pod-1"}));
}

TEST(PlanRequests, OwnersStandForTheirPods) {
  EXPECT_EQ(NamesOf(Read(Owner("Deployment", {{"replicas", 2}}))), (Names{"team/w-0", "team/w-1"}));
  EXPECT_EQ(Read(Owner("StatefulSet", Json::object())).pods.size(), 1u);
  EXPECT_EQ(Read(Owner("ReplicaSet", {{"replicas", 0}})).pods.size(), 0u);
  EXPECT_EQ(Read(Owner("Job", {{"parallelism", 5}})).pods.size(), 5u);
  const PlanRequest job = Read(Owner("Job", {{"parallelism", 5}, {"completions", 3}}));
  ASSERT_EQ(job.pods.size(), 3u);
  EXPECT_EQ(job.pods[2].shape.gpu_count(), 2);
  EXPECT_NE(job.pods[1].id.uid, job.pods[2].id.uid);
  ASSERT_EQ(job.sources.size(), 1u);
  EXPECT_EQ(job.sources[0].what, "Job team/w");
  EXPECT_EQ(job.sources[0].count, 3u);
}

TEST(PlanRequests, ListsStandForTheirItems) {
  const Json list = {{"kind", "List"},
                     {"items", {PodWithGpus("1", 1), Owner("Deployment", {{"replicas", 2}})}}};
  const Json pods = {{"kind", "PodList"}, {"items", Json::array({PodWithGpus("2", 1)})}};
  EXPECT_EQ(NamesOf(Read(list, pods)), (Names{"ns/pod-1", "team/w-0", "team/w-1", "ns/pod-2"}));
  const Json nested = {{"kind", "List"}, {"items", Json::array({list})}};
  EXPECT_EQ(ErrorOf(nested), "pods[0].items[0].kind: want no list inside of a list");
}

TEST(PlanRequests, WhatHasNoPodsToPlaceIsLeftOutByName) {
  Json bound = PodWithGpus("1", 1), over = PodWithGpus("2", 1);
  bound["spec"]["nodeName"] = "n1";
  over["status"]["phase"] = "Succeeded";
  const PlanRequest plan =
      Read(Json::parse(R"({"kind":"Service","metadata":{"name":"s"}})"), bound, over);
  EXPECT_TRUE(plan.pods.empty());
  EXPECT_EQ(plan.left_out, (Names{"Service default/s: no pods of this kind are known",
                                  "Pod ns/pod-1: it is on node n1", "Pod ns/pod-2: it has ended"}));
}

// --- PodGroups among the objects

Json GroupOf(const std::string& api_version, const Json& spec) {
  return {{"apiVersion", api_version},
          {"kind", "PodGroup"},
          {"metadata", {{"name", "g"}, {"namespace", "ns"}}},
          {"spec", spec}};
}
Json WithLabel(const std::string& key) {
  Json pod = PodWithGpus("1", 2);
  pod["metadata"]["labels"][key] = "g";
  return pod;
}
constexpr char kCoscheduled[] = "scheduling.x-k8s.io/pod-group";

TEST(PlanRequests, AGroupThatIsAskedAboutSaysWhatItsPodsNeed) {
  const Json group = GroupOf("scheduling.x-k8s.io/v1alpha1", {{"minMember", 3}});
  for (const PlanRequest& plan :
       {Read(group, WithLabel(kCoscheduled)), Read(WithLabel(kCoscheduled), group)}) {
    ASSERT_EQ(plan.pods.size(), 1u);
    EXPECT_EQ(plan.pods[0].gang.object, Gang::Object::kFound);
    EXPECT_EQ(plan.pods[0].gang.minimum, 3);
    EXPECT_TRUE(plan.left_out.empty());
  }
}

TEST(PlanRequests, GroupsOfEveryConventionAreReadByTheirApi) {
  Json volcano = PodWithGpus("1", 2);
  volcano["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "g";
  const Json list = {
      {"kind", "List"},
      {"items", {GroupOf("scheduling.volcano.sh/v1beta1", {{"minMember", 4}}), volcano}}};
  EXPECT_EQ(Read(list).pods[0].gang.minimum, 4);
  Json native = PodWithGpus("1", 2);
  native["spec"]["schedulingGroup"]["podGroupName"] = "g";
  const Json policy = {{"schedulingPolicy", {{"gang", {{"minCount", 5}}}}}};
  EXPECT_EQ(Read(native, GroupOf("scheduling.k8s.io/v1alpha2", policy)).pods[0].gang.minimum, 5);
  EXPECT_EQ(Read(native, GroupOf("scheduling.x-k8s.io/v1alpha1", {{"minMember", 3}}))
                .pods[0]
                .gang.minimum,
            std::nullopt)
      << "a group of another convention is another group";
}

TEST(PlanRequests, PodsOfAJobThatNameTheirGangAfterItAreAsManyAsItMakes) {
  for (const char* key : {"batch.kubernetes.io/controller-uid", "job-name", "owner"}) {
    Json job = Owner("Job", {{"parallelism", 5}, {"completions", 3}});
    job["spec"]["template"]["metadata"]["annotations"]["berth.dev/gang-by"] = key;
    const PlanRequest plan = Read(job);
    ASSERT_EQ(plan.pods.size(), 3u);
    EXPECT_EQ(plan.pods[0].refusal, "") << key;
    EXPECT_EQ(plan.pods[0].gang.minimum, 3) << key;
    EXPECT_EQ(plan.pods[0].gang, plan.pods[2].gang) << key;
  }
}

TEST(PlanRequests, AGroupOfTheRequestComesBeforeThatOfTheCluster) {
  PodGroups cluster;
  cluster.Of("coscheduling").Put({.namespace_name = "ns", .name = "g", .min_members = 2});
  cluster.Of("coscheduling").Put({.namespace_name = "ns", .name = "h", .min_members = 7});
  const PodRules rules = PlanRules().With(cluster);
  Json other = WithLabel(kCoscheduled);
  other["metadata"]["labels"][kCoscheduled] = "h";
  const auto plan =
      DecodePlan(BodyWith(WithLabel(kCoscheduled), other,
                          GroupOf("scheduling.x-k8s.io/v1alpha1", {{"minMember", 3}})),
                 rules, PlanNodes());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pods[0].gang.minimum, 3);
  EXPECT_EQ(plan->pods[1].gang.minimum, 7);
  EXPECT_EQ(cluster.Of("coscheduling").Find("ns/g")->min_members, 2) << "it stays as it was";
}

TEST(PlanRequests, AGroupThatCannotBeReadIsNamed) {
  const PlanRequest old =
      Read(WithLabel(kCoscheduled), GroupOf("scheduling.x-k8s.io/v1", {{"minMember", 3}}));
  EXPECT_EQ(old.left_out, Names{"PodGroup ns/g: PodGroups of apiVersion "
                                "\"scheduling.x-k8s.io/v1\" are not read"});
  EXPECT_EQ(old.pods[0].gang.minimum, std::nullopt);
  const PlanRequest wrong =
      Read(WithLabel(kCoscheduled), GroupOf("scheduling.x-k8s.io/v1alpha1", {{"minMember", -1}}));
  EXPECT_NE(wrong.pods[0].refusal.find("spec.minMember: want a number of pods"), std::string::npos)
      << wrong.pods[0].refusal;
  EXPECT_EQ(wrong.left_out.size(), 1u);
  EXPECT_EQ(
      ErrorOf(Json::parse(R"({"kind":"PodGroup","apiVersion":"scheduling.run.ai/v2alpha2"})")),
      "pods[0]: metadata.name: want a name, got \"\"");
}

TEST(PlanRequests, AJobOfVolcanoIsNoJobOfKubernetes) {
  Json job = Owner("Job", {{"minAvailable", 2}});
  job["apiVersion"] = "batch.volcano.sh/v1alpha1";
  EXPECT_EQ(Read(job).left_out, Names{"Job team/w: no pods of this kind are known"});
  job["apiVersion"] = "batch/v1";
  EXPECT_EQ(Read(job).pods.size(), 1u);
}

// --- nodes

TEST(PlanRequests, NodesComeAndGo) {
  const auto plan =
      DecodePlan(R"({"pods":[],"add":[{"like":"n1","count":3},{"like":"n2"}],"remove":["n3"]})",
                 PlanRules(), PlanNodes());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->nodes.add.size(), 2u);
  EXPECT_EQ(plan->nodes.add[0].like, "n1");
  EXPECT_EQ(plan->nodes.add[0].count, 3);
  EXPECT_EQ(plan->nodes.add[1].count, 1);
  EXPECT_EQ(plan->nodes.remove, Names{"n3"});
}

// A request to add nodes like this one.
Result<PlanRequest> AddLike(const std::string& node) {
  return DecodePlan(R"({"add":[{"like":)" + node + R"(,"count":2}]})", PlanRules(), PlanNodes());
}
std::string ShapeErrorOf(const std::string& node) {
  const auto plan = AddLike(node);
  EXPECT_FALSE(plan) << node;
  return plan ? "" : plan.error().message;
}

TEST(PlanRequests, ANodeThatComesMayBeDescribedByHand) {
  const auto plan = AddLike(R"({
      "metadata":{"labels":{"nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3","rack":"r7"}},
      "status":{"allocatable":{"cpu":128,"memory":"1Ti"},"capacity":{"nvidia.com/gpu":8}}})");
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->nodes.add.size(), 1u);
  const NodeCopies& copies = plan->nodes.add[0];
  EXPECT_EQ(copies.like, "node");
  EXPECT_EQ(copies.count, 2);
  ASSERT_TRUE(copies.shape);
  EXPECT_EQ(copies.shape->gpu_model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(copies.shape->cpu_milli, 128'000);
  EXPECT_EQ(copies.shape->memory_bytes, std::int64_t{1} << 40);
  EXPECT_EQ(copies.shape->gpus.size(), 8u) << "capacity alone is allocatable too";
  EXPECT_EQ(copies.shape->missing, 0);
}

TEST(PlanRequests, ANodeThatComesMayBeOneOfAnotherCluster) {
  const auto plan = AddLike(R"({"apiVersion":"v1","kind":"Node",
      "metadata":{"name":"gpu-17","labels":{"nvidia.com/gpu.product":"Tesla-T4"},
                  "annotations":{"berth.dev/topology":"nonsense"}},
      "spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]},
      "status":{"allocatable":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":"4"},
                "capacity":{"cpu":"8","memory":"33Gi","nvidia.com/gpu":"4"}}})");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->nodes.add[0].like, "gpu-17");
  EXPECT_EQ(plan->nodes.add[0].shape->memory_bytes, std::int64_t{32} << 30);
  EXPECT_EQ(plan->nodes.add[0].shape->taints.size(), 1u);
  ASSERT_EQ(plan->left_out.size(), 1u) << "what cannot be read is named";
  EXPECT_TRUE(plan->left_out[0].starts_with("add[0].like: ")) << plan->left_out[0];
}

TEST(PlanRequests, ADescriptionThatIsNoneIsRefusedWithItsPlace) {
  EXPECT_EQ(ShapeErrorOf(R"({"kind":"Pod"})"), "add[0].like.kind: want Node, got \"Pod\"");
  EXPECT_EQ(ShapeErrorOf("{}"),
            "add[0].like.status.allocatable.cpu: want how much pods can have of it, got none");
  EXPECT_EQ(ShapeErrorOf(R"({"status":{"allocatable":{"cpu":"1"}}})"),
            "add[0].like.status.allocatable.memory: want how much pods can have of it, got none");
  EXPECT_EQ(ShapeErrorOf(R"({"status":{"capacity":7}})"),
            "add[0].like.status.capacity: want an object, got number");
  EXPECT_EQ(ShapeErrorOf(R"({"metadata":{"name":7}})"),
            "add[0].like.metadata.name: want a name, got 7");
  EXPECT_TRUE(ShapeErrorOf(R"({"status":{"capacity":{"cpu":"x","memory":"1"}}})")
                  .starts_with("add[0].like: node node: status.allocatable.cpu: "));
  EXPECT_EQ(ShapeErrorOf("7"), "add[0].like: want a text, got number");
}

TEST(PlanRequests, WhatIsWrongIsRefusedWithItsPlace) {
  EXPECT_EQ(ErrorIn("[]"), "file: want an object");
  EXPECT_TRUE(ErrorIn("{").starts_with("JSON: byte ")) << ErrorIn("{");
  EXPECT_TRUE(ErrorIn(std::string(100'000, '[')).starts_with("JSON: byte "));
  EXPECT_EQ(ErrorIn(R"({"pod":[]})"), "pod: unknown key");
  EXPECT_EQ(ErrorIn(R"({"pods":[7]})"), "pods[0]: want an object, got number");
  EXPECT_EQ(ErrorIn(R"({"remove":[7]})"), "remove[0]: want the name of a node");
  EXPECT_EQ(ErrorIn(R"({"add":[{"like":"n1","count":0}]})"), "add[0].count: want 1..1000, got 0");
  EXPECT_EQ(ErrorOf(Json::parse(R"({"metadata":7})")),
            "pods[0].metadata: want an object, got number");
  EXPECT_EQ(ErrorOf(Owner("Deployment", {{"replicas", -1}})),
            "pods[0].spec.replicas: want a number of pods, got -1");
  EXPECT_EQ(ErrorOf(Json::parse(R"({"kind":"Job","metadata":{"name":"w"}})")),
            "pods[0].spec.template: want a template of pods, got none");
  EXPECT_EQ(ErrorOf(Json::parse(R"({"kind":"Job"})")),
            "pods[0].metadata.name: want a name, got none");
  EXPECT_TRUE(ErrorOf(Json::parse(R"({"spec":7})")).starts_with("pods[0]: pod: "));
}

TEST(PlanRequests, TooManyPodsAreRefusedBeforeTheyAreMade) {
  EXPECT_EQ(ErrorIn(BodyWith(PodWithGpus("1", 1), Owner("Job", {{"parallelism", 10'000}}))),
            "pods[1]: want at most 10000 pods in all, got more");
  EXPECT_EQ(ErrorOf(Owner("Job", {{"parallelism", 18'446'744'073'709'551'615U}})),
            "pods[0]: want at most 10000 pods in all, got more");
  EXPECT_EQ(ErrorIn(std::string(kMostPlanBytes + 1, ' ')),
            "body: want at most 4194304 bytes, got 4194305");
}

TEST(PlanRequests, AnUnreadableAnnotationIsTheAnswerAndNoError) {
  Json pod = PodWithGpus("1", 2);
  pod["metadata"]["annotations"]["berth.dev/link"] = "perhaps";
  EXPECT_NE(Read(pod).pods[0].refusal, "");
}

}  // namespace
}  // namespace berth::wire::plan_request_test
