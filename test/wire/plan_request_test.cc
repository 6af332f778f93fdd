// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_request.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/parse_yaml.h"
#include "scoring/admission.h"
#include "server/why/api_rules.h"
#include "test/support/build_paths.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/read_text.h"
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

TEST(PlanRequests, PodsOfOwnersMayNameTheirGangAfterThem) {
  for (const char* kind : {"StatefulSet", "Deployment", "ReplicaSet", "ReplicationController"}) {
    Json owner = Owner(kind, {{"replicas", 2}, {"podManagementPolicy", "Parallel"}});
    owner["spec"]["template"]["metadata"]["annotations"] = {{"berth.dev/gang-by", "owner"},
                                                            {"berth.dev/gang-size", "2"}};
    const PlanRequest plan = Read(owner);
    ASSERT_EQ(plan.pods.size(), 2u);
    EXPECT_EQ(plan.pods[0].refusal, "") << kind;
    EXPECT_EQ(plan.pods[0].gang.minimum, 2) << kind;
    EXPECT_EQ(plan.pods[0].gang, plan.pods[1].gang) << kind;
  }
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
  EXPECT_EQ(plan.left_out, (Names{"Service default/s: Berth knows no pods that it makes",
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

TEST(PlanRequests, APodGangSaysWhatItsPodsNeed) {
  const Json gang = {{"apiVersion", "scheduler.grove.io/v1alpha1"},
                     {"kind", "PodGang"},
                     {"metadata", {{"name", "g"}, {"namespace", "ns"}}},
                     {"spec", {{"podgroups", {{{"name", "w"}, {"minReplicas", 2}}}}}}};
  const PlanRequest plan = Read(WithLabel("grove.io/podgang"), gang);
  EXPECT_EQ(plan.left_out, Names());
  ASSERT_EQ(plan.pods.size(), 1u);
  EXPECT_EQ(plan.pods[0].gang.minimum, 2);
}

TEST(PlanRequests, AJobMakesNoPodsForThoseThatHaveSucceeded) {
  const auto pods = [](int succeeded) {
    Json job = Owner("Job", {{"parallelism", 3}, {"completions", 4}});
    job["status"]["succeeded"] = succeeded;
    return Read(job).pods.size();
  };
  EXPECT_EQ(pods(0), 3U);
  EXPECT_EQ(pods(1), 3U);
  EXPECT_EQ(pods(2), 2U);
  EXPECT_EQ(pods(5), 0U);
}

TEST(PlanRequests, WhatAnotherClusterRunsIsLeftOutByName) {
  const PlanRequest plan =
      Read(Owner("Job", {{"parallelism", 3}, {"managedBy", "kueue.x-k8s.io/multikueue"}}),
           Owner("Job", {{"parallelism", 2}, {"managedBy", "kubernetes.io/job-controller"}}));
  EXPECT_EQ(plan.pods.size(), 2U);
  EXPECT_EQ(plan.left_out,
            Names{"Job team/w: kueue.x-k8s.io/multikueue (spec.managedBy) makes its pods, "
                  "perhaps elsewhere"});
}

TEST(PlanRequests, AJobOfVolcanoIsNoJobOfKubernetes) {
  Json job = Owner("Job", {{"minAvailable", 2}});
  job["apiVersion"] = "batch.volcano.sh/v1alpha1";
  EXPECT_TRUE(Read(job).pods.empty()) << "it has no tasks";
  job["apiVersion"] = "batch/v1";
  EXPECT_EQ(Read(job).pods.size(), 1u);
}

// --- controllers that make pods of a form of their own

Json TemplateOf(int gpus) { return {{"spec", PodWithGpus("x", gpus)["spec"]}}; }
Json ObjectOf(const std::string& api, const std::string& kind, const Json& spec) {
  return {{"apiVersion", api},
          {"kind", kind},
          {"metadata", {{"name", "w"}, {"namespace", "team"}}},
          {"spec", spec}};
}
std::vector<int> GpusOf(const PlanRequest& plan) {
  std::vector<int> gpus;
  for (const PodRequest& pod : plan.pods) gpus.push_back(pod.shape.gpu_count());
  return gpus;
}

TEST(PlanRequests, ACronJobStandsForTheJobOfOneRun) {
  const Json job = {{"parallelism", 3}, {"completions", 2}, {"template", TemplateOf(2)}};
  const PlanRequest plan =
      Read(ObjectOf("batch/v1", "CronJob", {{"jobTemplate", {{"spec", job}}}}));
  EXPECT_EQ(NamesOf(plan), (Names{"team/w-0", "team/w-1"}));
  EXPECT_EQ(plan.sources[0].what, "CronJob team/w");
  EXPECT_TRUE(plan.left_out.empty());
}

TEST(PlanRequests, AJobSetStandsForThePodsOfAllItsJobs) {
  const Json leader = {{"name", "driver"}, {"template", {{"spec", {{"template", TemplateOf(0)}}}}}};
  const Json workers = {
      {"name", "workers"},
      {"replicas", 2},
      {"template", {{"spec", {{"parallelism", 2}, {"template", TemplateOf(4)}}}}}};
  Json set = ObjectOf("jobset.x-k8s.io/v1alpha2", "JobSet",
                      {{"replicatedJobs", Json::array({leader, workers})}});
  EXPECT_EQ(GpusOf(Read(set)), (std::vector<int>{0, 4, 4, 4, 4}));
  EXPECT_EQ(NamesOf(Read(set))[4], "team/w-workers-1-1");
  EXPECT_EQ(Read(set).sources[0].count, 5u);
  Json& gang_by = set["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["metadata"]
                     ["annotations"]["berth.dev/gang-by"];
  gang_by = "jobset.sigs.k8s.io/jobset-uid";
  EXPECT_EQ(Read(set).pods[1].gang.minimum, 5) << "as many as the JobSet has";
  EXPECT_EQ(Read(set).pods[1].gang, Read(set).pods[4].gang);
  gang_by = "jobset.sigs.k8s.io/job-key";
  EXPECT_NE(Read(set).pods[1].gang.id, Read(set).pods[4].gang.id) << "a gang of each Job";
}

TEST(PlanRequests, AGangWhosePodsAreMadeOneByOneNeverStarts) {
  Json owner = Owner("StatefulSet", {{"replicas", 2}});
  owner["spec"]["template"]["metadata"]["annotations"] = {{"berth.dev/gang-by", "owner"},
                                                          {"berth.dev/gang-size", "2"}};
  EXPECT_EQ(Read(owner).pods[1].refusal,
            "a StatefulSet creates its pods one by one: set podManagementPolicy: Parallel");
  Json alone = owner;
  alone["spec"]["template"]["metadata"]["annotations"]["berth.dev/gang-min"] = "1";
  EXPECT_EQ(Read(alone).pods[1].refusal, "") << "each may start alone";
  owner["spec"]["replicas"] = 1;
  EXPECT_EQ(Read(owner).pods[0].refusal, "") << "the others are another's";

  Json pods = TemplateOf(4);
  pods["metadata"]["annotations"]["berth.dev/gang-by"] = "jobset.sigs.k8s.io/jobset-uid";
  Json jobs = Json::array();
  for (const char* name : {"first", "second"}) {
    jobs.push_back({{"name", name}, {"template", {{"spec", {{"template", pods}}}}}});
  }
  Json set = ObjectOf("jobset.x-k8s.io/v1alpha2", "JobSet", {{"replicatedJobs", jobs}});
  EXPECT_EQ(Read(set).pods[1].refusal, "");
  set["spec"]["startupPolicy"] = {{"startupPolicyOrder", "InOrder"}};
  EXPECT_TRUE(Read(set).pods[1].refusal.starts_with("its JobSet starts its jobs one by one"))
      << Read(set).pods[1].refusal;
  set["spec"].erase("startupPolicy");
  set["spec"]["replicatedJobs"][1]["dependsOn"] =
      Json::array({{{"name", "first"}, {"status", "Ready"}}});
  EXPECT_TRUE(Read(set).pods[0].refusal.starts_with("its JobSet starts its jobs one by one"));
}

// The others wait for pods that are made when they run.
TEST(PlanRequests, AGangOfMorePodsThanAreMadeAtFirstNeverStarts) {
  Json mpi = {{"mpiReplicaSpecs",
               {{"Launcher", {{"replicas", 1}, {"template", TemplateOf(0)}}},
                {"Worker", {{"replicas", 2}, {"template", TemplateOf(8)}}}}}};
  const auto refusals = [&mpi](const char* size) {
    for (Json& role : mpi["mpiReplicaSpecs"]) {
      role["template"]["metadata"]["annotations"] = {{"berth.dev/gang-by", "owner"},
                                                     {"berth.dev/gang-size", size}};
    }
    Names texts;
    for (const PodRequest& pod : Read(ObjectOf("kubeflow.org/v2beta1", "MPIJob", mpi)).pods) {
      texts.push_back(pod.refusal);
    }
    return texts;
  };
  EXPECT_EQ(refusals("3"), Names(3));
  mpi["launcherCreationPolicy"] = "WaitForWorkersReady";
  EXPECT_EQ(refusals("3"), Names(3,
                                 "its gang never gathers: the launcher comes when the workers "
                                 "run; leave it out of the gang, and count 2 workers"));
  EXPECT_EQ(refusals("2"), Names(3)) << "the launcher comes later";

  Json spark = {{"executor",
                 {{"instances", 12},
                  {"annotations",
                   {{"berth.dev/gang-by", "spark-app-selector"}, {"berth.dev/gang-size", "12"}}}}}};
  const auto of_spark = [&spark] {
    return Read(ObjectOf("sparkoperator.k8s.io/v1beta2", "SparkApplication", spark));
  };
  EXPECT_EQ(of_spark().pods[0].refusal, "");
  EXPECT_EQ(of_spark().pods[1].refusal,
            "its gang never gathers: Spark makes its executors in batches; set "
            "spark.kubernetes.allocation.batch.size in sparkConf to their number");
  spark["sparkConf"]["spark.kubernetes.allocation.batch.size"] = "12";
  EXPECT_EQ(of_spark().pods[1].refusal, "");
}

TEST(PlanRequests, ADisaggregatedSetStandsForTheLeaderWorkerSetsOfItsRoles) {
  Json role = {{"replicas", 1},
               {"leaderWorkerTemplate", {{"size", 2}, {"workerTemplate", TemplateOf(8)}}}};
  role["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"]["berth.dev/gang-by"] =
      "leaderworkerset.sigs.k8s.io/group-key";
  Json inline_role = role;
  inline_role["name"] = "decode";
  Json set = {{"slices", 2},
              {"roles", Json::array({{{"name", "prefill"}, {"spec", role}}, inline_role})}};
  const std::string api = "disaggregatedset.x-k8s.io/v1";
  const PlanRequest plan = Read(ObjectOf(api, "DisaggregatedSet", set));
  Names sources;
  for (const auto& source : plan.sources) sources.push_back(source.what);
  EXPECT_EQ(sources,
            (Names{"LeaderWorkerSet team/w-0-prefill", "LeaderWorkerSet team/w-0-decode",
                   "LeaderWorkerSet team/w-1-prefill", "LeaderWorkerSet team/w-1-decode"}));
  ASSERT_EQ(plan.pods.size(), 8u);
  EXPECT_EQ(plan.pods[0].gang, plan.pods[1].gang);
  EXPECT_EQ(plan.pods[0].gang.minimum, 2);
  EXPECT_NE(plan.pods[1].gang.id, plan.pods[2].gang.id);
  set["slices"] = 5'001;
  EXPECT_EQ(ErrorOf(ObjectOf(api, "DisaggregatedSet", set)),
            "pods[0].spec.slices: want at most 5000, got more");
  set["slices"] = "x";
  EXPECT_EQ(ErrorOf(ObjectOf(api, "DisaggregatedSet", set)),
            "pods[0].spec.slices: want a number of pods, got \"x\"");
}

TEST(PlanRequests, TheFirstGroupsOfASliceAreOneGang) {
  const auto role = [](const char* name, int size) {
    Json of = {{"replicas", 2},
               {"leaderWorkerTemplate", {{"size", size}, {"workerTemplate", TemplateOf(8)}}}};
    of["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"]["berth.dev/gang-by"] =
        "disaggregatedset.x-k8s.io/slice";
    return Json{{"name", name}, {"spec", of}};
  };
  const PlanRequest plan =
      Read(ObjectOf("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet",
                    {{"slices", 2}, {"roles", {role("prefill", 2), role("decode", 1)}}}));
  ASSERT_EQ(plan.pods.size(), 12u);
  EXPECT_EQ(plan.pods[0].refusal, "");
  EXPECT_EQ(plan.pods[0].gang.id.name, "w-0");
  EXPECT_EQ(plan.pods[0].gang.minimum, 3);
  EXPECT_EQ(plan.pods[0].role, "prefill");
  EXPECT_EQ(plan.pods[4].gang, plan.pods[0].gang) << "the first of decode";
  EXPECT_EQ(plan.pods[2].gang.id.name, "w-0-prefill-1") << "the second group of prefill";
  EXPECT_EQ(plan.pods[2].gang.minimum, 2);
  EXPECT_EQ(plan.pods[6].gang.id.name, "w-1");
}

TEST(PlanRequests, ACompositePodGroupSaysWhatThePodsBelowItNeed) {
  Json composite = ObjectOf("scheduling.k8s.io/v1alpha3", "CompositePodGroup",
                            {{"schedulingPolicy", {{"gang", {{"minGroupCount", 1}}}}}});
  Json group = ObjectOf(
      "scheduling.k8s.io/v1alpha3", "PodGroup",
      {{"parentCompositePodGroupName", "w"}, {"schedulingPolicy", {{"gang", {{"minCount", 3}}}}}});
  group["metadata"]["name"] = "g";
  Json pod = {{"metadata", {{"name", "p"}, {"namespace", "team"}}},
              {"spec", TemplateOf(8)["spec"]}};
  pod["spec"]["schedulingGroup"]["podGroupName"] = "g";
  const PlanRequest plan = Read(Json{{"kind", "List"}, {"items", {pod, group, composite}}});
  ASSERT_EQ(plan.pods.size(), 1u);
  EXPECT_EQ(plan.left_out, Names());
  EXPECT_EQ(plan.pods[0].gang.id.text(), "kubernetes:team/w");
  EXPECT_EQ(plan.pods[0].gang.minimum, 3);
}

TEST(PlanRequests, AnAppWrapperStandsForWhatItWraps) {
  const auto wrap = [](const Json& objects) {
    Json components = Json::array();
    for (const Json& object : objects) components.push_back({{"template", object}});
    return ObjectOf("workload.codeflare.dev/v1beta2", "AppWrapper", {{"components", components}});
  };
  const Json job = ObjectOf("batch/v1", "Job", {{"parallelism", 3}, {"template", TemplateOf(2)}});
  EXPECT_EQ(GpusOf(Read(wrap(Json::array({job})))), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(ErrorOf(wrap(Json::array({wrap(Json::array({job}))}))),
            "pods[0].spec.components: want templates of other objects, each with a kind");
  EXPECT_EQ(ErrorOf(wrap(Json::array({5}))),
            "pods[0].spec.components: want templates of other objects, each with a kind");
}

TEST(PlanRequests, RolesOfServingGroupsStandForTheirPods) {
  const auto role = [](const char* name, int replicas, const char* field, const Json& of) {
    return Json{{"name", name}, {"replicas", replicas}, {field, of}};
  };
  const Json roles = {
      role("router", 1, "template", TemplateOf(0)),
      role("prefill", 2, "standalonePattern", {{"template", TemplateOf(1)}}),
      role("decode", 1, "leaderWorkerPattern", {{"size", 2}, {"template", TemplateOf(8)}})};
  const std::string api = "workloads.x-k8s.io/v1alpha2";
  EXPECT_EQ(GpusOf(Read(ObjectOf(api, "RoleBasedGroup", {{"roles", roles}}))),
            (std::vector<int>{0, 1, 1, 8, 8}));
  Json shared = {
      {"roles", {role("a", 1, "standalonePattern", {{"templateRef", {{"name", "t"}}}})}}};
  EXPECT_EQ(Read(ObjectOf(api, "RoleBasedGroup", shared)).left_out,
            (Names{"RoleBasedGroup team/w: role a has no template of its own; want its pods"}));
  Json set = {{"roles", {role("prefill", 2, "template", TemplateOf(4))}}};
  set["roles"][0]["podGroupSize"] = 2;
  EXPECT_EQ(GpusOf(Read(ObjectOf("orchestration.aibrix.ai/v1alpha1", "RoleSet", set))),
            (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(Read(ObjectOf("orchestration.aibrix.ai/v1alpha1", "StormService",
                          {{"replicas", 3}, {"template", {{"spec", set}}}}))
                .pods.size(),
            12u);
  EXPECT_EQ(
      Read(ObjectOf("nvidia.com/v1alpha1", "DynamoGraphDeployment", {{"services", 1}})).left_out,
      (Names{"DynamoGraphDeployment team/w: want the PodCliqueSet, or the Deployments and "
             "LeaderWorkerSets, that are made of it"}));
}

TEST(PlanRequests, ALeaderWorkerSetStandsForItsGroups) {
  const Json both = {
      {"size", 3}, {"leaderTemplate", TemplateOf(1)}, {"workerTemplate", TemplateOf(8)}};
  Json set = ObjectOf("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
                      {{"replicas", 2}, {"leaderWorkerTemplate", both}});
  EXPECT_EQ(GpusOf(Read(set)), (std::vector<int>{1, 8, 8, 1, 8, 8}));
  for (const char* part : {"leaderTemplate", "workerTemplate"}) {
    set["spec"]["leaderWorkerTemplate"][part]["metadata"]["annotations"]["berth.dev/gang-by"] =
        "leaderworkerset.sigs.k8s.io/group-key";
  }
  const PlanRequest plan = Read(set);
  EXPECT_EQ(plan.pods[0].refusal, "");
  EXPECT_EQ(plan.pods[0].gang.id, plan.pods[2].gang.id);
  EXPECT_NE(plan.pods[0].gang.id, plan.pods[3].gang.id);
  EXPECT_EQ(plan.pods[1].gang.minimum, 3);
}

TEST(PlanRequests, AJobOfKubeflowStandsForThePodsOfItsRoles) {
  const Json roles = {{"Master", {{"template", TemplateOf(1)}}},
                      {"Worker", {{"replicas", 2}, {"template", TemplateOf(8)}}}};
  const PlanRequest plan =
      Read(ObjectOf("kubeflow.org/v1", "PyTorchJob", {{"pytorchReplicaSpecs", roles}}));
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{1, 8, 8}));
  EXPECT_EQ(NamesOf(plan), (Names{"team/w-master-0", "team/w-worker-0", "team/w-worker-1"}));
}

TEST(PlanRequests, ARayClusterStandsForItsHeadAndItsWorkers) {
  Json workers = {{"groupName", "gpu"}, {"replicas", 2}, {"numOfHosts", 2}, {"minReplicas", 0}};
  workers["template"] = TemplateOf(8);
  Json cluster = {{"headGroupSpec", {{"template", TemplateOf(0)}}}};
  cluster["workerGroupSpecs"] = Json::array({workers});
  const PlanRequest plan = Read(ObjectOf("ray.io/v1", "RayCluster", cluster));
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{0, 8, 8, 8, 8}));
  EXPECT_EQ(NamesOf(plan)[1], "team/w-gpu-worker-0");
  EXPECT_TRUE(plan.left_out.empty());
  EXPECT_EQ(GpusOf(Read(ObjectOf("ray.io/v1", "RayJob", {{"rayClusterSpec", cluster}}))),
            GpusOf(plan));
  EXPECT_EQ(GpusOf(Read(ObjectOf("ray.io/v1", "RayService", {{"rayClusterConfig", cluster}}))),
            GpusOf(plan));
  Json job = {{"clusterSelector", {{"ray.io/cluster", "other"}}}, {"rayClusterSpec", cluster}};
  const PlanRequest of_other = Read(ObjectOf("ray.io/v1", "RayJob", job));
  EXPECT_TRUE(of_other.pods.empty());
  EXPECT_TRUE(of_other.sources.empty());
  EXPECT_EQ(of_other.left_out, Names{"RayJob team/w: it makes no cluster: it runs on that of "
                                     "spec.clusterSelector"});
  EXPECT_EQ(Read(ObjectOf("ray.io/v1", "RayService", Json::object())).left_out,
            Names{"RayService team/w: want spec.rayClusterSpec or spec.rayClusterConfig, got "
                  "neither"});
  cluster["workerGroupSpecs"][0]["maxReplicas"] = 1;
  EXPECT_EQ(Read(ObjectOf("ray.io/v1", "RayCluster", cluster)).pods.size(), 3u);
  cluster["workerGroupSpecs"][0].erase("maxReplicas");
  cluster["workerGroupSpecs"][0].erase("replicas");
  cluster["workerGroupSpecs"][0]["minReplicas"] = 1;
  EXPECT_EQ(Read(ObjectOf("ray.io/v1", "RayCluster", cluster)).pods.size(), 3u);
  cluster["workerGroupSpecs"][0]["suspend"] = true;
  EXPECT_EQ(Read(ObjectOf("ray.io/v1", "RayCluster", cluster)).pods.size(), 1u) << "the head";
}

TEST(PlanRequests, PodsOfARayClusterNameTheirGangAfterIt) {
  Json cluster = {{"headGroupSpec", {{"template", TemplateOf(0)}}}};
  cluster["workerGroupSpecs"] = Json::array({{{"groupName", "gpu"}, {"replicas", 2}}});
  cluster["workerGroupSpecs"][0]["template"] = TemplateOf(8);
  for (Json* const part : {&cluster["headGroupSpec"], &cluster["workerGroupSpecs"][0]}) {
    (*part)["template"]["metadata"]["annotations"] = {{"berth.dev/gang-by", "ray.io/cluster"},
                                                      {"berth.dev/gang-size", "3"}};
  }
  const PlanRequest plan = Read(ObjectOf("ray.io/v1", "RayCluster", cluster));
  ASSERT_EQ(plan.pods.size(), 3u);
  EXPECT_EQ(plan.pods[0].refusal, "");
  EXPECT_EQ(plan.pods[0].gang, plan.pods[2].gang);
  EXPECT_EQ(plan.pods[0].gang.minimum, 3);
}

TEST(PlanRequests, ATrainJobStandsForThePodsOfItsNodes) {
  Json job = {
      {"runtimeRef", {{"name", "torch-distributed"}}},
      {"trainer", {{"numNodes", 4}, {"resourcesPerNode", {{"limits", {{"nvidia.com/gpu", 8}}}}}}}};
  const PlanRequest plan = Read(ObjectOf("trainer.kubeflow.org/v1alpha1", "TrainJob", job));
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(plan.sources[0].what, "TrainJob team/w");
  EXPECT_TRUE(plan.left_out.empty());
  const Json annotations = {{"berth.dev/gang-by", "jobset.sigs.k8s.io/jobset-uid"}};
  const Json change = {{"targetJobs", Json::array({{{"name", "node"}}})},
                       {"metadata", {{"annotations", annotations}}},
                       {"spec", {{"nodeSelector", {{"pool", "a"}}}}}};
  job["podTemplateOverrides"] = Json::array({change});
  const PlanRequest gang = Read(ObjectOf("trainer.kubeflow.org/v1alpha1", "TrainJob", job));
  ASSERT_EQ(gang.pods.size(), 4u);
  EXPECT_EQ(gang.pods[0].gang.minimum, 4);
  ASSERT_NE(gang.pods[0].constraints, nullptr);
  EXPECT_TRUE(gang.pods[0].constraints->selects());
  Json patch = change;
  patch.erase("targetJobs");
  const Json of_node = {{"name", "node"}, {"template", {{"spec", {{"template", patch}}}}}};
  const Json spec = {{"replicatedJobs", Json::array({of_node})}};
  job.erase("podTemplateOverrides");
  job["runtimePatches"] =
      Json::array({{{"manager", "m"}, {"trainingRuntimeSpec", {{"template", {{"spec", spec}}}}}}});
  const PlanRequest patched = Read(ObjectOf("trainer.kubeflow.org/v1alpha1", "TrainJob", job));
  EXPECT_EQ(patched.pods[0].gang.minimum, 4);
  ASSERT_NE(patched.pods[0].constraints, nullptr);
  EXPECT_TRUE(patched.pods[0].constraints->selects());
  job["trainer"].erase("numNodes");
  EXPECT_EQ(Read(ObjectOf("trainer.kubeflow.org/v1alpha1", "TrainJob", job)).left_out,
            Names{"TrainJob team/w: its runtime says what pods it makes; want "
                  "spec.trainer.numNodes and spec.trainer.resourcesPerNode"});
}

TEST(PlanRequests, AnMpiJobStandsForItsLauncherAndItsWorkers) {
  Json roles = {{"Launcher", {{"replicas", 1}, {"template", TemplateOf(0)}}},
                {"Worker", {{"replicas", 2}, {"template", TemplateOf(8)}}}};
  for (Json& role : roles) {
    role["template"]["metadata"]["annotations"] = {
        {"berth.dev/gang-by", "training.kubeflow.org/job-name"}, {"berth.dev/gang-size", "3"}};
  }
  const PlanRequest plan =
      Read(ObjectOf("kubeflow.org/v2beta1", "MPIJob", {{"mpiReplicaSpecs", roles}}));
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{0, 8, 8}));
  EXPECT_EQ(plan.pods[0].gang, plan.pods[2].gang);
  EXPECT_EQ(plan.pods[0].gang.minimum, 3);
}

TEST(PlanRequests, ASparkApplicationStandsForItsDriverAndItsExecutors) {
  Json app = {{"type", "Python"},
              {"driver", {{"cores", 1}, {"memory", "512m"}}},
              {"executor",
               {{"instances", 2},
                {"cores", 4},
                {"memory", "10g"},
                {"gpu", {{"name", "nvidia.com/gpu"}, {"quantity", 1}}},
                {"annotations",
                 {{"berth.dev/gang-by", "spark-app-selector"}, {"berth.dev/gang-size", "2"}}},
                {"nodeSelector", {{"pool", "a"}}}}}};
  const std::string api = "sparkoperator.k8s.io/v1beta2";
  const PlanRequest plan = Read(ObjectOf(api, "SparkApplication", app));
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(NamesOf(plan), (Names{"team/w-driver-0", "team/w-exec-0", "team/w-exec-1"}));
  EXPECT_EQ(plan.pods[0].shape.memory_bytes, std::int64_t{512 + 384} << 20);
  EXPECT_EQ(plan.pods[1].shape.memory_bytes,
            (std::int64_t{10} << 30) + (std::int64_t{10} << 30) / 100 * 40);
  EXPECT_EQ(plan.pods[1].shape.cpu_milli, 4000);
  EXPECT_TRUE(plan.pods[0].gang.empty()) << "the driver makes the executors";
  EXPECT_EQ(plan.pods[1].gang.minimum, 2);
  EXPECT_EQ(NamesOf(Read(ObjectOf(api, "ScheduledSparkApplication",
                                  {{"schedule", "@daily"}, {"template", app}}))),
            NamesOf(plan))
      << "those of one run";
  app["dynamicAllocation"] = {{"enabled", true}, {"minExecutors", 3}};
  EXPECT_EQ(Read(ObjectOf(api, "SparkApplication", app)).pods.size(), 4u);
  for (const Json& wrong : {Json("x"), Json(1), Json::array()}) {
    app["executor"] = wrong;
    EXPECT_EQ(Read(ObjectOf(api, "SparkApplication", app)).pods.size(), 4u) << "nothing is said";
  }
}

TEST(PlanRequests, WhatHasATemplateOfPodsStandsForItsReplicas) {
  for (const char* kind : {"Rollout", "CloneSet", "Notebook"}) {
    EXPECT_EQ(GpusOf(Read(Owner(kind, {{"replicas", 2}}))), (std::vector<int>{2, 2})) << kind;
    EXPECT_EQ(Read(Owner(kind, Json::object())).pods.size(), 1u) << kind;
  }
}

Json CliqueOf(const std::string& name, int gpus, int replicas) {
  return {{"name", name},
          {"spec", {{"replicas", replicas}, {"podSpec", TemplateOf(gpus)["spec"]}}}};
}

TEST(PlanRequests, APodCliqueSetStandsForItsPodGangs) {
  Json decode = CliqueOf("decode", 8, 3);
  decode["spec"]["minAvailable"] = 2;
  Json cliques = Json::array(
      {CliqueOf("router", 0, 1), decode, CliqueOf("leader", 4, 1), CliqueOf("worker", 8, 2)});
  const Json group = {{"name", "prefill"}, {"cliqueNames", {"leader", "worker"}}, {"replicas", 2}};
  Json of = {{"cliques", cliques}, {"podCliqueScalingGroups", Json::array({group})}};
  const auto read = [&of](int replicas) {
    return ObjectOf("grove.io/v1alpha1", "PodCliqueSet",
                    {{"replicas", replicas}, {"template", of}});
  };
  const PlanRequest plan = Read(read(1));
  EXPECT_TRUE(plan.left_out.empty());
  ASSERT_EQ(plan.sources.size(), 2u);
  EXPECT_EQ(plan.sources[0].what, "PodGang team/w-0");
  EXPECT_EQ(plan.sources[1].what, "PodGang team/w-0-prefill-0");
  EXPECT_EQ(NamesOf(plan)[0], "team/w-0-router-0");
  EXPECT_EQ(GpusOf(plan), (std::vector<int>{0, 8, 8, 8, 4, 8, 8, 4, 8, 8}));
  EXPECT_EQ(plan.pods[0].gang.id, plan.pods[4].gang.id);
  EXPECT_NE(plan.pods[0].gang.id, plan.pods[7].gang.id) << "beyond minAvailable";
  EXPECT_EQ(plan.pods[0].gang.minimum, 1 + 2 + 1 + 2);
  EXPECT_EQ(plan.pods[7].gang.minimum, 3);
  EXPECT_EQ(plan.pods[1].role, "w-0-decode");
  EXPECT_EQ(Read(read(2)).sources.size(), 4u);
  const PodRules with_levels(test::AllDialects(), DefaultConfig());
  const auto in_one = [&](const char* domain) {
    of["topologyConstraint"] = {{"topologyName", "t"}, {"pack", {{"required", domain}}}};
    return DecodePlan(BodyWith(read(1)), with_levels, PlanNodes()).value().pods[1];
  };
  EXPECT_EQ(in_one("zone").domain.required, 1u) << "a level of that name";
  EXPECT_NE(in_one("aisle").refusal.find("\"aisle\" is no topology level"), std::string::npos);
  in_one("zone");
  const auto beyond = DecodePlan(BodyWith(read(1)), with_levels, PlanNodes()).value().pods[7];
  EXPECT_EQ(beyond.domain.required, 1u) << "its group says none";
  of["topologyConstraint"] = {{"packDomain", "zone"}, {"pack", 5}};
  EXPECT_EQ(DecodePlan(BodyWith(read(1)), with_levels, PlanNodes()).value().pods[1].domain.required,
            1u);
  of.erase("topologyConstraint");
  EXPECT_EQ(ErrorOf(read(10'001)), "pods[0].spec.replicas: want at most 10000, got more");
  of["podCliqueScalingGroups"][0]["replicas"] = 10'000;
  of["podCliqueScalingGroups"][0]["minAvailable"] = 10'000;
  EXPECT_EQ(ErrorOf(read(10'000)), "pods[0]: want at most 16 MiB of cliques, got more");
  of["podCliqueScalingGroups"][0]["cliqueNames"] = {"leader", "nope"};
  EXPECT_EQ(ErrorOf(read(1)),
            "pods[0].spec.template.podCliqueScalingGroups: cliqueNames: want names of cliques, got "
            "\"nope\"");
  for (const Json& no_clique : {Json(5), Json("x"), Json::array({1}), Json::object()}) {
    of["cliques"] = Json::array({no_clique});
    EXPECT_EQ(ErrorOf(read(1)),
              "pods[0].spec.template.cliques: want objects with a name, got " + no_clique.dump());
  }
  of["cliques"] = Json::array();
  EXPECT_EQ(ErrorOf(read(1)), "pods[0].spec.template.cliques: want a list of cliques, got none");
}

TEST(PlanRequests, AJobOfVolcanoStartsAsItsPodGroupHasIt) {
  const Json task = {{"name", "worker"}, {"replicas", 3}, {"template", TemplateOf(8)}};
  Json job = ObjectOf("batch.volcano.sh/v1alpha1", "Job",
                      {{"minAvailable", 2}, {"tasks", Json::array({task})}});
  const PlanRequest plan = Read(job);
  ASSERT_EQ(plan.pods.size(), 3u);
  EXPECT_EQ(plan.pods[0].gang.minimum, 2);
  EXPECT_EQ(plan.pods[0].gang, plan.pods[2].gang);
  EXPECT_EQ(plan.pods[0].scheduler, "volcano");
  EXPECT_TRUE(plan.left_out.empty());
  job["spec"]["schedulerName"] = "berth";
  EXPECT_EQ(Read(job).pods[0].scheduler, "berth");
}

// docs/with-operators.md: each manifest makes one gang, and nothing of it is left out.
TEST(PlanRequests, TheManifestsOfTheDocsAreGangs) {
  const std::string page = test::ReadText(test::SourceDir() + "/docs/with-operators.md");
  std::map<std::string, std::size_t> gangs;
  const std::string begin = "```yaml\n";
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t from = at + begin.size(), to = page.find("```", from);
    const auto objects = JsonDocuments(page.substr(from, to - from), "page");
    ASSERT_TRUE(objects) << objects.error().message;
    ASSERT_EQ(objects->size(), 1u);
    const Json object = Json::parse(objects->front());
    const std::string kind = object["kind"];
    const PlanRequest plan = Read(object);
    EXPECT_TRUE(plan.left_out.empty()) << kind;
    ASSERT_FALSE(plan.pods.empty()) << kind;
    for (const PodRequest& pod : plan.pods) {
      EXPECT_EQ(pod.refusal, "") << kind;
      if (pod.gang.empty()) continue;
      ++gangs[kind];
      EXPECT_EQ(pod.gang.id, plan.pods.back().gang.id) << kind;
    }
    EXPECT_EQ(plan.pods.back().gang.minimum, static_cast<int>(gangs[kind])) << kind;
  }
  EXPECT_EQ(gangs,
            (std::map<std::string, std::size_t>{
                {"RayCluster", 5}, {"TrainJob", 4}, {"PyTorchJob", 4}, {"SparkApplication", 8}}));
}

TEST(PlanRequests, ADaemonSetHasAPodOnEachNodeThatItChooses) {
  Json daemons = ObjectOf("apps/v1", "DaemonSet", {{"template", TemplateOf(1)}});
  daemons["spec"]["template"]["spec"]["nodeSelector"] = {{"pool", "a"}};
  PlanRequest plan = Read(PodWithGpus("1", 1), daemons, PodWithGpus("2", 1));
  const auto snapshot = test::SnapshotOf(
      {test::ANode("n1").Labelled({{"pool", "a"}}),
       test::ANode("n2").Labelled({{"pool", "a"}}).Tainted("node.kubernetes.io/unschedulable"),
       test::ANode("n3").Labelled({{"pool", "b"}}),
       test::ANode("n4").Labelled({{"pool", "a"}}).Tainted("dedicated")});
  ASSERT_TRUE(Expand(plan, *snapshot));
  EXPECT_EQ(NamesOf(plan), (Names{"ns/pod-1", "ns/pod-2", "team/w-n1", "team/w-n2"}));
  EXPECT_EQ(plan.notes.size(), plan.pods.size());
  EXPECT_EQ(plan.sources[1].first, 2u);
  EXPECT_EQ(plan.sources[1].count, 2u);
  for (NodeIndex node : {0U, 1U, 2U}) {
    const bool is_there = Admits(snapshot->node(node).spec(), plan.pods[2]) == Reason::kFits;
    EXPECT_EQ(is_there, node == 0);
  }
}

TEST(PlanRequests, TemplatesThatAreReadForEachJobAreBounded) {
  Json job = {
      {"name", "j"}, {"replicas", 1000}, {"template", {{"spec", {{"template", TemplateOf(1)}}}}}};
  job["template"]["spec"]["template"]["metadata"]["annotations"]["x"] = std::string(100'000, 'x');
  EXPECT_EQ(ErrorOf(ObjectOf("jobset.x-k8s.io/v1alpha2", "JobSet",
                             {{"replicatedJobs", Json::array({job})}})),
            "pods[0].spec.replicatedJobs[0].template.spec.template: want at most 64 MiB of pods, "
            "got more");
}

// --- what Berth does not judge

Names NotJudgedOf(const Json& spec) {
  Json pod = PodWithGpus("1", 1);
  for (const auto& [key, value] : spec.items()) pod["spec"][key] = value;
  const PlanRequest plan = Read(pod);
  return plan.notes[0] == nullptr ? Names() : plan.notes[0]->not_judged;
}

TEST(PlanRequests, WhatBerthDoesNotJudgeIsNamed) {
  EXPECT_EQ(NotJudgedOf(Json::object()), Names());
  EXPECT_EQ(NotJudgedOf(Json::parse(R"({"volumes":[
      {"name":"a","persistentVolumeClaim":{"claimName":"data"}},
      {"name":"b","emptyDir":{}}, {"name":"c","ephemeral":{}}]})")),
            (Names{"volume claim data", "volume c"}));
  EXPECT_EQ(NotJudgedOf(Json::parse(R"({"initContainers":[
      {"name":"i","ports":[{"containerPort":1},{"containerPort":2,"hostPort":80}]}]})")),
            Names{"host port 80"});
  EXPECT_EQ(NotJudgedOf(Json::parse(R"({"topologySpreadConstraints":[
      {"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"},
      {"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway"}]})")),
            Names{"spread over zone"});
  EXPECT_EQ(NotJudgedOf(Json::parse(R"({"affinity":{
      "podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack"}]},
      "podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}}})")),
            Names{"pod affinity over rack"});
  EXPECT_EQ(NotJudgedOf(Json::parse(R"({"resourceClaims":[
      {"name":"nic","resourceClaimName":"nic-7"},{"name":"own","resourceClaimTemplateName":"t"}]})")),
            (Names{"ResourceClaim nic-7", "ResourceClaim own"}));
  // By annotations alone kube-scheduler binds it without a GPU.
  Json share = PodWithGpus("1", 1);
  share["spec"]["containers"][0]["resources"] = Json::object();
  share["metadata"]["annotations"]["nvidia.com/container.main.gpu-memory.request"] = "8Gi";
  const auto of = [](const Json& pod) {
    const PlanRequest plan = Read(pod);
    return plan.notes[0] == nullptr ? Names() : plan.notes[0]->not_judged;
  };
  EXPECT_EQ(of(share),
            Names{"whether kube-scheduler asks Berth, as no container asks for a GPU resource"});
  share["spec"]["containers"][0]["resources"]["limits"]["berth.dev/gpu-memory-mib"] = "0";
  EXPECT_EQ(of(share), Names());
}

// What Berth says of admission, on a node with these labels and NVIDIA's taint.
std::pair<bool, Names> Admitted(const Labels& labels, const Json& pod) {
  NodeSpec spec = test::MachineWith("n1", 1);
  spec.labels = labels;
  spec.taints = {{"nvidia.com/gpu", "present", TaintEffect::kNoSchedule}};
  ClusterState state;
  EXPECT_TRUE(state.Apply(std::vector<ClusterEvent>{NodeUpserted{spec}}));
  PlanRequest plan = Read(pod);
  EXPECT_TRUE(Expand(plan, *state.Current()));
  const bool tolerates = Admits(spec, plan.pods.at(0)) == Reason::kFits;
  return {tolerates, plan.notes[0] == nullptr ? Names() : plan.notes[0]->not_judged};
}

TEST(PlanRequests, ThatAdmissionLetsTolerateTheTaintOfTheirResourceDo) {
  const Json with_gpu = PodWithGpus("g", 1), without = test::PodAsking("c", {{"cpu", "1"}});
  for (const char* label : {"cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool",
                            "eks.amazonaws.com/nodegroup"}) {
    EXPECT_EQ(Admitted({{label, "a"}}, with_gpu), std::pair(true, Names())) << label;
    EXPECT_EQ(Admitted({{label, "a"}}, without), std::pair(false, Names())) << label;
  }
  EXPECT_EQ(Admitted({}, with_gpu),
            std::pair(false, Names{"toleration by ExtendedResourceToleration"}))
      << "whether that runs is not known";
  Json tolerating = with_gpu;
  tolerating["spec"]["tolerations"] =
      Json::array({{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}});
  EXPECT_EQ(Admitted({}, tolerating), std::pair(true, Names())) << "it needs nobody to add it";
  EXPECT_EQ(Admitted({}, without), std::pair(false, Names()));
}

TEST(PlanRequests, ThatTheApiServerRefusesAreRefusedWithItsReason) {
  Json pod = PodWithGpus("g", 1);
  pod["spec"]["containers"][0]["resources"] = {{"limits", {{"nvidia.com/gpu", "0.5"}}}};
  EXPECT_EQ(Read(pod).pods.at(0).refusal,
            "the API server refuses spec.containers[0].resources.limits[nvidia.com/gpu]: want an "
            "integer, got 0.5");
  pod["spec"]["initContainers"] = pod["spec"]["containers"];
  EXPECT_NE(Read(pod).pods.at(0).refusal.find("spec.initContainers[0]"), std::string::npos);
}

TEST(PlanRequests, WithoutAContainerAreRefused) {
  Json pod = PodWithGpus("g", 1);
  pod["spec"]["containers"] = Json::array();
  const char* const why = "the API server refuses spec.containers: want at least one";
  EXPECT_EQ(Read(pod).pods.at(0).refusal, why);
  pod["spec"].erase("containers");
  EXPECT_EQ(Read(pod).pods.at(0).refusal, why);
}

TEST(PlanRequests, FieldsThatAreNearlyRightAreNamed) {
  const Json pod = PodWithGpus("g", 1);
  const auto refusal = [&pod](const char* at, const char* key) {
    Json wrong = pod;
    wrong[Json::json_pointer(at)][key] = Json::object();
    return Read(wrong).pods.at(0).refusal;
  };
  EXPECT_EQ(refusal("/spec", "nodeSelectors"),
            "kubectl refuses spec.nodeSelectors: unknown field, did you mean nodeSelector?");
  EXPECT_EQ(refusal("/spec/containers/0", "resource"),
            "kubectl refuses spec.containers[0].resource: unknown field, did you mean resources?");
  EXPECT_EQ(refusal("/spec/containers/0/resources", "limit"),
            "kubectl refuses spec.containers[0].resources.limit: unknown field, did you mean "
            "limits?");
  EXPECT_EQ(refusal("/spec/containers/0", "limits"),
            "kubectl refuses spec.containers[0].limits: unknown field, did you mean "
            "resources.limits?");
  EXPECT_EQ(refusal("/spec/containers/0", "tolerations"),
            "kubectl refuses spec.containers[0].tolerations: unknown field, did you mean "
            "spec.tolerations?");
  EXPECT_EQ(refusal("/metadata", "annotation"),
            "kubectl refuses metadata.annotation: unknown field, did you mean annotations?");
  for (const char* key : {"hostUsers", "os", "setHostnameAsFQDN", "nodeSelector"}) {
    EXPECT_EQ(refusal("/spec", key), "") << key;
  }
  for (const char* key : {"securityContext", "resizePolicy", "lifecycle"}) {
    EXPECT_EQ(refusal("/spec/containers/0", key), "") << key;
  }
}

TEST(PlanRequests, WhatBerthDoesNotJudgeIsBounded) {
  Json volumes = Json::array();
  for (int i = 0; i < 1000; ++i) volumes.push_back({{"name", std::string(300, 'v')}, {"x", i}});
  for (Json& volume : volumes) volume["name"] = "v" + volume["x"].dump() + std::string(300, 'v');
  const Names names = NotJudgedOf({{"volumes", volumes}});
  EXPECT_EQ(names.size(), kMostNotJudged);
  EXPECT_EQ(names.back(), "993 others");
  for (const std::string& name : names) EXPECT_LE(name.size(), kMostNotJudgedBytes);
}

TEST(PlanRequests, ScheduledGatesAndSchedulersAreNoted) {
  Json gated = PodWithGpus("1", 1), foreign = PodWithGpus("2", 1);
  gated["spec"]["schedulingGates"] = Json::parse(R"([{"name":"kueue.x-k8s.io/admission"}])");
  foreign["spec"]["schedulerName"] = "volcano";
  PlanRequest plan = Read(gated, foreign, PodWithGpus("3", 1));
  EXPECT_EQ(plan.notes[0]->held_back, "scheduling gates hold it back: kueue.x-k8s.io/admission");
  NoteSchedulers({""}, plan);
  EXPECT_EQ(plan.notes[1]->not_judged, Names{"scheduler volcano"});
  EXPECT_EQ(plan.notes[2]->not_judged, Names());
  PlanRequest unknown = Read(foreign, PodWithGpus("3", 1));
  NoteSchedulers({}, unknown);
  EXPECT_NE(unknown.notes[0], nullptr);
  EXPECT_EQ(unknown.notes[1]->not_judged, Names()) << "who asks is not known";
}

// What it would have to change is Berth's rule, and another scheduler places it by its own.
TEST(PlanRequests, APodOfAnotherSchedulerIsNotToldToChange) {
  Json foreign = PodWithGpus("1", 1), same = PodWithGpus("2", 1);
  for (Json* pod : {&foreign, &same}) (*pod)["spec"]["schedulerName"] = "hami-scheduler";
  foreign["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "3000";
  PlanRequest plan = Read(foreign, same);
  ASSERT_NE(plan.pods[0].refusal, "");
  NoteSchedulers({""}, plan);
  EXPECT_EQ(plan.notes[0]->held_back, "hami-scheduler places it, and has not asked Berth");
  EXPECT_EQ(plan.notes[1]->held_back, "") << "it may have a place";
  PlanRequest unknown = Read(foreign);
  NoteSchedulers({}, unknown);
  EXPECT_EQ(unknown.notes[0]->held_back,
            "hami-scheduler places it; if that asks Berth: " + unknown.pods[0].refusal);
}

TEST(PlanRequests, OtherResourcesOfAPodAreCounted) {
  Json pod = PodWithGpus("1", 1);
  Json& resources = pod["spec"]["containers"][0]["resources"]["limits"];
  resources["rdma/hca"] = "2";
  resources["hugepages-2Mi"] = "4Mi";
  pod["spec"]["initContainers"] =
      Json::array({{{"name", "i"},
                    {"resources", {{"limits", {{"rdma/hca", "3"}, {"a.kubernetes.io/b", 1}}}}}}});
  const PlanRequest plan = Read(pod);
  ASSERT_NE(plan.pods[0].others, nullptr);
  EXPECT_EQ(
      *plan.pods[0].others,
      (OtherResources{{"a.kubernetes.io/b", 1}, {"hugepages-2Mi", 4 << 20}, {"rdma/hca", 3}}));
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
  EXPECT_TRUE(
      ErrorOf(Json::parse(R"({"spec":7})"))
          .ends_with(": spec: want the type that Kubernetes gives it, got 7; put texts in quotes"));
  EXPECT_TRUE(ErrorOf(Json::parse(R"({"spec":7})")).starts_with("pods[0]: pod "));
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

TEST(PlanRequests, RoomIsAskedForAtMost100Names) {
  const auto with = [](std::size_t names) {
    Json body = {{"make_room", {{"for", Json::array()}}}};
    for (std::size_t i = 0; i < names; ++i) body["make_room"]["for"].push_back("ns/p");
    return body.dump();
  };
  const auto read = DecodePlan(with(kMostRoomNames), PlanRules(), PlanNodes());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->room->names.size(), 100u);
  EXPECT_EQ(ErrorIn(with(kMostRoomNames + 1)),
            "make_room.for[100]: want at most 100 names of pods or gangs, each NAMESPACE/NAME");
}

TEST(PlanRequests, WhatRoomIsAskedForIsChecked) {
  EXPECT_EQ(ErrorIn(R"({"make_room":{"model":"H100"}})"),
            "make_room.model: want idle_nodes beside it, got none");
  EXPECT_EQ(ErrorIn(R"({"grow":1,"make_room":{}})"), "make_room: want it without grow");
  EXPECT_NE(ErrorIn(R"({"make_room":{"idle_nodes":100000}})"), "");
  EXPECT_NE(ErrorIn(R"({"make_room":[]})"), "");
}

}  // namespace
}  // namespace berth::wire::plan_request_test
