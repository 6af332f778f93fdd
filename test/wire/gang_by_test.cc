// SPDX-License-Identifier: Apache-2.0
//
// Gangs that are named after the controller that makes their pods, and how many pods its object
// says (docs/with-controllers.md). Pods and objects as the controllers write them.
#include "server/dialects/groups/gang_by.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/dialects/groups/pod_group_json.h"
#include "server/dialects/registry.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::gang_by_test {
namespace {

using dialects::kJob;
using dialects::kJobSet;
using dialects::kLeaderWorkerSet;
using test::Json;

constexpr char kGangBy[] = "berth.dev/gang-by";
constexpr char kOfJobs[] = "batch.kubernetes.io/controller-uid";
constexpr char kOfJobSets[] = "jobset.sigs.k8s.io/jobset-uid";
constexpr char kOfGroups[] = "leaderworkerset.sigs.k8s.io/group-key";

std::shared_ptr<const Dialects> With(const std::vector<std::string>& controllers) {
  Config config = DefaultConfig();
  config.gangs.controllers = controllers;
  return dialects::AllDialects(config);
}

Json Owner(const std::string& api, const std::string& kind, const std::string& name) {
  return Json::array({{{"apiVersion", api},
                       {"kind", kind},
                       {"name", name},
                       {"uid", "uid-" + name},
                       {"controller", true}}});
}

// A template of pods with so many GPUs.
Json Template(int gpus, const Json& annotations = Json::object()) {
  Json pod = test::PodWithGpus("u", 8);
  if (gpus == 0) pod["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "1"}}}};
  if (gpus > 0) pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus;
  return {{"metadata", {{"annotations", annotations}}}, {"spec", pod["spec"]}};
}

class GangByTest : public ::testing::Test {
 protected:
  explicit GangByTest(const std::vector<std::string>& controllers = {})
      : rules_(With(controllers), DefaultConfig().resources, {}, &groups_) {
    for (const std::string_view kind : {kJob, kJobSet, kLeaderWorkerSet})
      groups_.Of(kind).Reset({});
  }

  [[nodiscard]] PodRequest Read(const Json& metadata, int gpus = 8) const {
    Json pod = test::PodWithGpus("u", 8);
    pod["metadata"].update(metadata);
    pod["spec"] = Template(gpus)["spec"];
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules_);
    EXPECT_TRUE(observed) << pod;
    return observed ? observed->pod : PodRequest();
  }
  // As the Job controller makes it, by the name of the Job.
  static Json OfJob(const std::string& job, const Json& annotations) {
    return {{"annotations", annotations},
            {"labels",
             {{kOfJobs, "uid-" + job},
              {"batch.kubernetes.io/job-name", job},
              {"controller-uid", "uid-" + job},
              {"job-name", job}}},
            {"ownerReferences", Owner("batch/v1", "Job", job)}};
  }
  static Json OfJobSet(const std::string& attempt, const std::string& job,
                       const Json& annotations) {
    Json metadata = OfJob("js-" + job + "-0", annotations);
    metadata["labels"].update({{"jobset.sigs.k8s.io/jobset-name", "js"},
                               {kOfJobSets, "uid-js"},
                               {"jobset.sigs.k8s.io/replicatedjob-name", job},
                               {"jobset.sigs.k8s.io/restart-attempt", attempt}});
    return metadata;
  }
  static Json OfGroup(int group, int worker, Json annotations) {
    annotations["leaderworkerset.sigs.k8s.io/size"] = "4";
    return {{"annotations", annotations},
            {"labels",
             {{"leaderworkerset.sigs.k8s.io/name", "llm"},
              {"leaderworkerset.sigs.k8s.io/group-index", std::to_string(group)},
              {"leaderworkerset.sigs.k8s.io/worker-index", std::to_string(worker)},
              {kOfGroups, "hash-of-" + std::to_string(group)},
              {"leaderworkerset.sigs.k8s.io/template-revision-hash", "r1"}}},
            {"ownerReferences", Owner("apps/v1", "StatefulSet", "llm")}};
  }

  // As the watch brings it. Returns what Berth says of it.
  std::string Put(std::string_view kind, const std::string& name, const Json& spec,
                  const Json& status = Json::object()) {
    const Json object = {
        {"kind", kind},
        {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}}},
        {"spec", spec},
        {"status", status}};
    std::string problem;
    auto read = dialects::DecodeController(test::Padded(object.dump()), kind, rules_, problem);
    EXPECT_TRUE(read) << object;
    if (read) groups_.Of(kind).Put(*std::move(read));
    return problem;
  }
  void PutJobSet(const Json& jobs, const Json& more = Json::object()) {
    Json spec = {{"replicatedJobs", jobs}};
    spec.update(more);
    Put(kJobSet, "js", spec);
  }
  static Json ReplicatedJob(const std::string& name, int replicas, int pods, int gpus) {
    return {
        {"name", name},
        {"replicas", replicas},
        {"template",
         {{"spec", {{"parallelism", pods}, {"completions", pods}, {"template", Template(gpus)}}}}}};
  }
  void PutSet(const std::string& policy, const Json& parts = Json::object()) {
    Json both = {{"size", 4}, {"workerTemplate", Template(8)}};
    both.update(parts);
    Put(kLeaderWorkerSet, "llm", {{"startupPolicy", policy}, {"leaderWorkerTemplate", both}});
  }

  PodGroups groups_;
  const PodRules rules_;
};

TEST_F(GangByTest, EachJobIsAGangOfAsManyPodsAsRunAtATime) {
  Put(kJob, "train", {{"parallelism", 4}, {"completions", 8}, {"template", Template(8)}});
  for (const char* key :
       {kOfJobs, "batch.kubernetes.io/job-name", "controller-uid", "job-name", "owner"}) {
    const PodRequest pod = Read(OfJob("train", {{kGangBy, key}}));
    EXPECT_EQ(pod.refusal, "") << key;
    EXPECT_EQ(pod.gang.id.text(), "berth:ns/train.uid-train") << key;
    EXPECT_EQ(pod.gang.minimum, 4) << key;
    EXPECT_EQ(pod.gang.object, Gang::Object::kFound) << key;
  }
  Put(kJob, "train", {{"parallelism", 9}, {"completions", 3}, {"template", Template(8)}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, "owner"}})).gang.minimum, 3);
  Put(kJob, "train", {{"parallelism", 5}, {"template", Template(8)}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, "owner"}})).gang.minimum, 5);
  Put(kJob, "train", {{"template", Template(8)}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, "owner"}})).gang.minimum, 1) << "no gang";
}

// What has succeeded is not made again: the last pod of a Job starts alone.
TEST_F(GangByTest, PodsThatHaveSucceededAreNotWaitedFor) {
  const Json spec = {{"parallelism", 4}, {"completions", 4}, {"template", Template(8)}};
  Put(kJob, "train", spec, {{"active", 1}, {"succeeded", 3}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}})).gang.minimum, 1);
  Put(kJob, "train", {{"parallelism", 4}, {"completions", 20}, {"template", Template(8)}},
      {{"succeeded", 14}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}})).gang.minimum, 4);
}

TEST_F(GangByTest, TheNextRunOfACronJobIsAnotherGang) {
  const Json by = {{kGangBy, kOfJobs}};
  EXPECT_NE(Read(OfJob("nightly-1", by)).gang.id, Read(OfJob("nightly-2", by)).gang.id);
}

TEST_F(GangByTest, WhileTheJobIsNotKnownItsPodsWait) {
  const Json pod = OfJob("train", {{kGangBy, kOfJobs}});
  EXPECT_EQ(Read(pod).gang.object, Gang::Object::kMissing);
  EXPECT_EQ(Read(pod).gang.minimum, std::nullopt);
  EXPECT_EQ(Read(pod).refusal, "");
  groups_.Of(kJob).NotServed();
  EXPECT_EQ(Read(pod).gang.object, Gang::Object::kMissing) << "they ask for it";
  Put(kJob, "train", {{"parallelism", 4}, {"template", Template(8)}});
  Gang gang = Read(pod).gang;
  EXPECT_EQ(gang.minimum, 4);
  groups_.Of(kJob).Remove("ns", "train");
  groups_.Update(gang);
  EXPECT_EQ(gang.minimum, std::nullopt);
  // One of that name that was made later.
  gang.controller.uid = "uid-older";
  Put(kJob, "train", {{"parallelism", 4}, {"template", Template(8)}});
  groups_.Update(gang);
  EXPECT_EQ(gang.object, Gang::Object::kMissing);
}

TEST_F(GangByTest, WhatThePodSaysGoesBeforeTheController) {
  Put(kJob, "train", {{"parallelism", 8}, {"template", Template(8)}});
  const PodRequest pod = Read(OfJob(
      "train", {{kGangBy, kOfJobs}, {"berth.dev/gang-size", "4"}, {"berth.dev/gang-min", "3"}}));
  EXPECT_EQ(pod.gang.minimum, 3);
  EXPECT_EQ(pod.gang.total, 4);
  EXPECT_EQ(pod.gang.object, Gang::Object::kNone);
}

TEST_F(GangByTest, AnAttemptOfAJobSetIsAGangOfAllItsPods) {
  PutJobSet({ReplicatedJob("driver", 1, 1, 0), ReplicatedJob("workers", 2, 4, 8)});
  const Json by = {{kGangBy, kOfJobSets}};
  const PodRequest pod = Read(OfJobSet("0", "workers", by));
  EXPECT_EQ(pod.gang.id.text(), "berth:ns/js.uid-js.0");
  EXPECT_EQ(pod.gang.minimum, 9);
  EXPECT_EQ(pod.gang.one_by_one, OneByOne::kNo);
  EXPECT_EQ(Read(OfJobSet("0", "driver", by), 0).gang, pod.gang);
  EXPECT_NE(Read(OfJobSet("1", "workers", by)).gang.id, pod.gang.id) << "a restart";
  EXPECT_EQ(Read(OfJobSet("0", "workers", {{kGangBy, "jobset.sigs.k8s.io/jobset-name"}})).gang,
            pod.gang);
  EXPECT_EQ(Read(OfJobSet("0", "workers", {{kGangBy, kOfJobs}})).gang.id.text(),
            "berth:ns/js-workers-0.uid-js-workers-0")
      << "each of its Jobs";
}

TEST_F(GangByTest, AJobSetThatStartsJobsWithGpusInOrderIsKnown) {
  const Json pod = OfJobSet("0", "workers", {{kGangBy, kOfJobSets}});
  const Json in_order = {{"startupPolicy", {{"startupPolicyOrder", "InOrder"}}}};
  PutJobSet({ReplicatedJob("a", 1, 4, 8), ReplicatedJob("b", 1, 4, 8)}, in_order);
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kInOrder);
  PutJobSet({ReplicatedJob("driver", 1, 1, 0), ReplicatedJob("b", 1, 4, 8)}, in_order);
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kNo) << "the driver needs no GPU";
  Json second = ReplicatedJob("b", 1, 4, 8);
  second["dependsOn"] = Json::array({{{"name", "a"}, {"status", "Ready"}}});
  PutJobSet({ReplicatedJob("a", 1, 4, 8), second});
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kInOrder);
  PutJobSet({ReplicatedJob("a", 1, 4, 0), second});
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kNo);
  PutJobSet({ReplicatedJob("a", 1, 4, 8), second});
  Json sized = pod;
  sized["annotations"]["berth.dev/gang-size"] = "8";
  EXPECT_EQ(Read(sized).gang.one_by_one, OneByOne::kInOrder) << "also where the pod says the size";
}

TEST_F(GangByTest, JobsThatHaveEndedWhenTheOthersStartAreNotWaitedFor) {
  Json workers = ReplicatedJob("workers", 1, 4, 8);
  for (const auto& [status, pods] : {std::pair("Complete", 4), std::pair("Ready", 6)}) {
    workers["dependsOn"] = Json::array({{{"name", "data"}, {"status", status}}});
    PutJobSet({ReplicatedJob("data", 2, 1, 0), workers});
    EXPECT_EQ(Read(OfJobSet("0", "workers", {{kGangBy, kOfJobSets}})).gang.minimum, pods);
  }
  workers["dependsOn"] = Json::array({{{"name", "nobody"}, {"status", "Complete"}}});
  PutJobSet({ReplicatedJob("data", 2, 1, 0), workers});
  EXPECT_EQ(Read(OfJobSet("0", "workers", {{kGangBy, kOfJobSets}})).gang.minimum, 6);
}

TEST_F(GangByTest, ControllersWithoutGpusMakeNoGangs) {
  Put(kJob, "train", {{"parallelism", 4}, {"template", Template(0)}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}}), 0).gang.minimum, 1);
  PutJobSet(Json::array({ReplicatedJob("a", 1, 4, 0)}));
  EXPECT_EQ(Read(OfJobSet("0", "a", {{kGangBy, kOfJobSets}}), 0).gang.minimum, 1);
}

TEST_F(GangByTest, PodsThatGetGpusByClaimsAloneMakeGangs) {
  Json pods = Template(0);
  pods["spec"]["resourceClaims"] = {{{"name", "g"}, {"resourceClaimTemplateName", "two"}}};
  Put(kJob, "train", {{"parallelism", 4}, {"completions", 4}, {"template", pods}});
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}}), 0).gang.minimum, 4);
  PutSet("LeaderCreated", {{"workerTemplate", pods}});
  EXPECT_EQ(Read(OfGroup(1, 0, {{kGangBy, kOfGroups}}), 0).gang.minimum, 4);
}

TEST_F(GangByTest, AGroupOfALeaderWorkerSetIsAGang) {
  const Json by = {{kGangBy, kOfGroups}};
  const PodRequest worker = Read(OfGroup(1, 2, by));
  EXPECT_EQ(worker.gang.id.text(), "berth:ns/llm-1.r1");
  EXPECT_EQ(worker.gang.minimum, 4) << "its pods say it";
  EXPECT_EQ(worker.gang.one_by_one, OneByOne::kNo) << "its StatefulSets make pods at once";
  PutSet("LeaderCreated");
  const PodRequest leader = Read(OfGroup(1, 0, by));
  EXPECT_EQ(leader.gang.minimum, 4);
  EXPECT_EQ(leader.followers(), 0);
  EXPECT_NE(Read(OfGroup(2, 0, by)).gang.id, leader.gang.id);
}

TEST_F(GangByTest, OthersFollowALeaderThatHasToBeReadyFirst) {
  PutSet("LeaderReady");
  const Json by = {{kGangBy, kOfGroups}};
  EXPECT_EQ(Read(OfGroup(1, 0, by)).followers(), 3);
  EXPECT_EQ(Read(OfGroup(1, 0, by)).gang.minimum, 1);
  EXPECT_EQ(Read(OfGroup(1, 3, by)).followers(), 0) << "a worker";
  PutSet("LeaderReady", {{"leaderTemplate", Template(8)}});
  EXPECT_EQ(Read(OfGroup(1, 0, by)).followers(), 3);
  PutSet("LeaderReady", {{"leaderTemplate", Template(0)}});
  EXPECT_EQ(Read(OfGroup(1, 0, by)).followers(), 0) << "what they ask for is not what it asks for";
}

// The PodGroup that LeaderWorkerSet writes says 1 where the leader starts first.
TEST_F(GangByTest, LeadersAreKnownByThePodGroupOfTheirSetToo) {
  const Json pod = OfGroup(1, 0, {{"scheduling.k8s.io/group-name", "llm-1-r1"}});
  groups_.Of("volcano").Put({"ns", "llm-1-r1", 4});
  EXPECT_EQ(Read(pod).gang.minimum, 4);
  EXPECT_EQ(Read(pod).followers(), 0);
  groups_.Of("volcano").Put({"ns", "llm-1-r1", 1});
  EXPECT_EQ(Read(pod).followers(), 3);
  EXPECT_EQ(Read(OfJob("train", {{"scheduling.k8s.io/group-name", "llm-1-r1"}})).followers(), 0);
}

TEST_F(GangByTest, AnyLabelAndAnyOwnerNameAGangWhoseSizeThePodSays) {
  Json pod = {{"labels", {{"example.com/run", "7"}}},
              {"annotations", {{kGangBy, "example.com/run"}, {"berth.dev/gang-size", "4"}}},
              {"ownerReferences", Owner("apps/v1", "StatefulSet", "serve")}};
  EXPECT_EQ(Read(pod).gang.id.text(), "berth:ns/example.com/run=7");
  EXPECT_EQ(Read(pod).gang.minimum, 4);
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kStatefulSet);
  pod["annotations"][kGangBy] = "owner";
  EXPECT_EQ(Read(pod).gang.id.text(), "berth:ns/serve.uid-serve");
  // A label of a Job on a pod that no Job has made.
  pod["annotations"][kGangBy] = "job-name";
  pod["labels"]["job-name"] = "train";
  EXPECT_EQ(Read(pod).gang.id.text(), "berth:ns/job-name=train");
  // A Job of another API.
  pod["annotations"][kGangBy] = "owner";
  pod["ownerReferences"] = Owner("batch.volcano.sh/v1alpha1", "Job", "train");
  EXPECT_TRUE(Read(pod).gang.controller.empty());
}

TEST_F(GangByTest, WhatNamesNoGangIsRefusedWithTheCure) {
  const auto refusal = [this](const Json& annotations, const Json& labels = Json::object()) {
    return Read({{"annotations", annotations}, {"labels", labels}}).refusal;
  };
  EXPECT_EQ(refusal({{kGangBy, "job-nam"}}),
            "annotation berth.dev/gang-by: want owner, or the key of a label of the pod, got "
            "\"job-nam\", which the pod does not have");
  EXPECT_EQ(refusal({{kGangBy, kOfJobs}}),
            "annotation berth.dev/gang-by: want owner, or the key of a label of the pod, got "
            "\"batch.kubernetes.io/controller-uid\", which the pod does not have");
  EXPECT_EQ(refusal({{kGangBy, "owner"}}),
            "annotation berth.dev/gang-by: want the key of a label of the pod, got \"owner\", and "
            "the pod has none");
  EXPECT_EQ(refusal({{kGangBy, "run"}}, {{"run", ""}}),
            "label run: want the name of a gang, got \"\"");
  EXPECT_EQ(refusal({{kGangBy, "run"}}, {{"run", "7"}}),
            "annotation berth.dev/gang-size: want a number of pods from 1 to 10000 beside "
            "berth.dev/gang-by, got none");
  EXPECT_EQ(refusal({{kGangBy, "run"}, {"berth.dev/gang-size", "x"}}, {{"run", "7"}}),
            "annotation berth.dev/gang-size: want a number of pods from 1 to 10000, got \"x\"");
  EXPECT_EQ(refusal({{kGangBy, "run"}, {"berth.dev/gang", "g"}, {"berth.dev/gang-size", "4"}},
                    {{"run", "7"}}),
            "annotation berth.dev/gang-by: want none beside berth.dev/gang, got \"run\"");
  EXPECT_NE(
      refusal({{kGangBy, "run"}, {"berth.dev/gang-size", "4"}}, {{"run", std::string(300, 'x')}}),
      "")
      << "longer than names are";
  Json group = OfGroup(0, 0, {{kGangBy, kOfGroups}});
  group["annotations"]["leaderworkerset.sigs.k8s.io/size"] = "many";
  EXPECT_EQ(Read(group).refusal,
            "annotation leaderworkerset.sigs.k8s.io/size: want a number of pods from 1 to 10000, "
            "got \"many\"");
}

TEST_F(GangByTest, AControllerWithTooManyPodsRefusesThem) {
  const std::string problem = "pods: want at most 10000, got more";
  EXPECT_EQ(Put(kJob, "train", {{"parallelism", 10'001}, {"template", Template(8)}}), problem);
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}})).refusal, "Job train: " + problem);
  PutJobSet(Json::array({ReplicatedJob("a", 2'000'000'000, 2'000'000'000, 8)}));
  EXPECT_EQ(Read(OfJobSet("0", "a", {{kGangBy, kOfJobSets}})).refusal, "JobSet js: " + problem);
  EXPECT_EQ(Put(kJob, "train", {{"parallelism", -1}, {"template", Template(8)}}), "");
  EXPECT_EQ(Read(OfJob("train", {{kGangBy, kOfJobs}})).gang.minimum, 1);
}

TEST_F(GangByTest, PodsThatAreMadeOneByOneAreKnown) {
  const char* const exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology";
  Json pod = OfJobSet("0", "workers", {{kGangBy, kOfJobSets}, {exclusive, "rack"}});
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kExclusiveTopology);
  pod["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true";
  EXPECT_EQ(Read(pod).gang.one_by_one, OneByOne::kNo);
  EXPECT_EQ(Read(OfGroup(1, 0,
                         {{kGangBy, kOfGroups},
                          {"leaderworkerset.sigs.k8s.io/exclusive-topology", "rack"}}))
                .gang.one_by_one,
            OneByOne::kExclusiveTopology);
}

TEST_F(GangByTest, WhatIsNoControllerIsAnError) {
  const auto message = [this](const Json& object) {
    std::string problem;
    const auto read =
        dialects::DecodeController(test::Padded(object.dump()), kJob, rules_, problem);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(message({{"kind", "JobSet"}, {"metadata", {{"name", "js"}}}}),
            "kind: want Job, got \"JobSet\"");
  EXPECT_NE(message({{"kind", "Job"}, {"spec", {{"parallelism", "four"}}}}), "");
  EXPECT_EQ(message({{"metadata", {{"name", "j"}}}}), "") << "lists leave the kind out";
}

TEST_F(GangByTest, ObjectsThatChangeInOtherWaysChangeNoGang) {
  const Json spec = {{"parallelism", 4}, {"template", Template(8)}};
  Put(kJob, "train", spec);
  const std::uint64_t seen = groups_.changes();
  Put(kJob, "train", spec, {{"active", 4}, {"ready", 2}});
  EXPECT_EQ(groups_.changes(), seen);
}

class OfControllersTest : public GangByTest {
 protected:
  OfControllersTest() : GangByTest({"job", "jobset", "lws"}) {}
};

TEST_F(OfControllersTest, TheirPodsAreGangsWithoutAnyAnnotation) {
  Put(kJob, "train", {{"parallelism", 4}, {"template", Template(8)}});
  const Json none = Json::object();
  EXPECT_EQ(Read(OfJob("train", none)).gang.id.text(), "berth:ns/train.uid-train");
  EXPECT_EQ(Read(OfJob("train", none)).gang.minimum, 4);
  EXPECT_TRUE(Read(OfJob("train", none), 0).gang.empty()) << "it asks for no GPU";
  PutJobSet({ReplicatedJob("driver", 1, 1, 0), ReplicatedJob("workers", 2, 4, 8)});
  EXPECT_EQ(Read(OfJobSet("0", "workers", none)).gang.id.text(), "berth:ns/js.uid-js.0")
      << "not its Job";
  EXPECT_EQ(Read(OfJobSet("0", "driver", none), 0).gang.minimum, 9);
  EXPECT_EQ(Read(OfGroup(1, 0, none)).gang.id.text(), "berth:ns/llm-1.r1");
  EXPECT_TRUE(Read({{"ownerReferences", Owner("apps/v1", "ReplicaSet", "web")}}).gang.empty());
}

TEST_F(OfControllersTest, WhereNobodyTellsTheirNumberTheirPodsStandAlone) {
  groups_.Of(kJob).NotServed();
  EXPECT_EQ(Read(OfJob("train", Json::object())).gang.object, Gang::Object::kNotServed);
  groups_.Of(kJob).Reset({});
  EXPECT_EQ(Read(OfJob("train", Json::object())).gang.object, Gang::Object::kMissing);
}

TEST_F(OfControllersTest, WordsOnThePodGoBeforeTheConfiguration) {
  Put(kJob, "train", {{"parallelism", 4}, {"template", Template(8)}});
  EXPECT_EQ(
      Read(OfJob("train", {{"berth.dev/gang", "g"}, {"berth.dev/gang-size", "2"}})).gang.id.text(),
      "berth:ns/g");
  EXPECT_EQ(Read(OfJob("train", {{"scheduling.k8s.io/group-name", "g"}})).gang.id.text(),
            "volcano:ns/g");
  // One that says nothing more than that each pod may start alone.
  Json pod = OfJob("train", {{"kueue.x-k8s.io/pod-group-total-count", "1"}});
  pod["labels"]["kueue.x-k8s.io/pod-group-name"] = "g";
  EXPECT_EQ(Read(pod).gang.id.text(), "berth:ns/train.uid-train");
  // Volcano's controller names a PodGroup on every pod.
  EXPECT_EQ(
      Read(OfJob("train", {{"scheduling.k8s.io/group-name", "podgroup-uid-train"}})).gang.id.text(),
      "berth:ns/train.uid-train");
}

// All sets have a role prefill.
TEST_F(GangByTest, LabelsThatDisaggregatedSetsShareNameNoGang) {
  for (const std::string word : {"role", "revision", "name"}) {
    const std::string key = "disaggregatedset.x-k8s.io/" + word;
    const PodRequest pod = Read({{"labels", {{key, "0"}}},
                                 {"annotations", {{kGangBy, key}, {"berth.dev/gang-size", "2"}}}});
    EXPECT_EQ(pod.refusal, word == "name" ? ""
                                          : "annotation berth.dev/gang-by: want "
                                            "disaggregatedset.x-k8s.io/slice or "
                                            "leaderworkerset.sigs.k8s.io/group-key on pods of a "
                                            "DisaggregatedSet, got \"" +
                                                key + "\", which does not name one");
  }
}

class OfSlicesTest : public GangByTest {
 protected:
  OfSlicesTest() { groups_.Of(dialects::kDisaggregatedSet).Reset({}); }
  // Prefill in groups of 4, decode in groups of 2.
  static Json Spec() {
    const auto role = [](const char* name, int size, int replicas) -> Json {
      return {{"name", name},
              {"spec",
               {{"replicas", replicas},
                {"leaderWorkerTemplate", {{"size", size}, {"workerTemplate", Template(8)}}}}}};
    };
    return {{"slices", 2}, {"roles", {role("prefill", 4, 3), role("decode", 2, 1)}}};
  }
  [[nodiscard]] PodRequest Pod(const std::string& role, int group,
                               const std::string& slice = "1") const {
    Json metadata = OfGroup(group, 1, {{kGangBy, "disaggregatedset.x-k8s.io/slice"}});
    metadata["labels"].update({{"leaderworkerset.sigs.k8s.io/name", "llm-1-ab-" + role},
                               {"disaggregatedset.x-k8s.io/name", "llm"},
                               {"disaggregatedset.x-k8s.io/slice", slice},
                               {"disaggregatedset.x-k8s.io/role", role},
                               {"disaggregatedset.x-k8s.io/revision", "ab"}});
    return Read(metadata);
  }
};

TEST_F(OfSlicesTest, TheFirstGroupOfEachRoleOfASliceStartTogether) {
  EXPECT_EQ(Pod("prefill", 0).gang.object, Gang::Object::kMissing);
  EXPECT_EQ(Put(dialects::kDisaggregatedSet, "llm", Spec()), "");
  const PodRequest prefill = Pod("prefill", 0);
  EXPECT_EQ(prefill.refusal, "");
  EXPECT_EQ(prefill.gang.id.text(), "berth:ns/llm-1.ab");
  EXPECT_EQ(prefill.gang.minimum, 6);
  EXPECT_EQ(prefill.gang.roles, (std::vector<GangRole>{{"decode", 2}, {"prefill", 4}}));
  EXPECT_EQ(prefill.role, "prefill");
  EXPECT_EQ(Pod("decode", 0).gang, prefill.gang);
  EXPECT_EQ(Pod("decode", 0, "0").gang.id.name, "llm-0.ab");
}

TEST_F(OfSlicesTest, EachLaterGroupStartsByItself) {
  Put(dialects::kDisaggregatedSet, "llm", Spec());
  Put(kLeaderWorkerSet, "llm-1-ab-prefill",
      {{"leaderWorkerTemplate", {{"size", 4}, {"workerTemplate", Template(8)}}}});
  const PodRequest pod = Pod("prefill", 2);
  EXPECT_EQ(pod.gang.id.text(), "berth:ns/llm-1-ab-prefill-2.r1");
  EXPECT_EQ(pod.gang.minimum, 4);
  EXPECT_EQ(pod.role, "");
}

TEST_F(OfSlicesTest, RolesThatMayHaveNoGroupAreNotWaitedFor) {
  Json spec = Spec();
  spec["roles"][0]["scaling"] = {{"mode", "External"}};
  Put(dialects::kDisaggregatedSet, "llm", spec);
  EXPECT_EQ(Pod("decode", 0).gang.roles, (std::vector<GangRole>{{"decode", 2}}));
  EXPECT_EQ(Pod("prefill", 0).gang.minimum, 2);
  spec = Spec();
  spec["roles"][0]["spec"]["startupPolicy"] = "LeaderReady";
  Put(dialects::kDisaggregatedSet, "llm", spec);
  EXPECT_EQ(Pod("decode", 0).gang.roles, (std::vector<GangRole>{{"decode", 2}, {"prefill", 1}}))
      << "its workers are made when the leader runs";
}

class OfJobsTest : public GangByTest {
 protected:
  OfJobsTest() : GangByTest({"job"}) {}
};

TEST_F(OfJobsTest, AJobOfAJobSetIsAGangWhereJobSetsAreNone) {
  EXPECT_EQ(Read(OfJobSet("0", "workers", Json::object())).gang.id.text(),
            "berth:ns/js-workers-0.uid-js-workers-0");
  EXPECT_TRUE(Read(OfGroup(1, 0, Json::object())).gang.empty());
}

}  // namespace
}  // namespace berth::wire::gang_by_test
