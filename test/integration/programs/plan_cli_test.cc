// SPDX-License-Identifier: Apache-2.0
//
// `berth plan` against a running berth and on a file.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/running_berth.h"

namespace berth::test::plan_cli_test {
namespace {

Outcome RunPlan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "plan");
  return RunProgram("berth", arguments);
}

constexpr char kManifests[] = R"(# A pod, and a deployment with a service.
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: team}
spec:
  containers:
    - name: main
      resources: {limits: {nvidia.com/gpu: 4}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: main
          resources: {limits: {nvidia.com/gpu: "1", cpu: 500m}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team}
)";

class PlanCommands : public testing::Test {
 protected:
  Outcome Ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(),
                     {"-f", pods_, "--server", "http://127.0.0.1:" + std::to_string(port_)});
    return RunPlan(arguments);
  }

  const TemporaryFolder folder_;
  const std::string pods_ = folder_.WriteText("pods.yaml", kManifests);
  Running berth_{folder_, kCluster};
  const int port_ = berth_.port();
};

TEST_F(PlanCommands, WhatFitsWhereIsPrintedALinePerObject) {
  const Outcome text = Ask({});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(
      text.out.starts_with("Pod team/train: fits on n2 with GPU 0, GPU 1, GPU 2, GPU 3\n"
                           "Deployment team/web: 2 of 3 pods fit: 2 on n1\n"
                           "  1 does not: fits none of 2 nodes; nearest is n1: 0 of 2 GPUs idle, "
                           "needs 1"))
      << text.out;
  EXPECT_TRUE(
      text.out.ends_with("Left out: Service team/web: Berth knows no pods that it makes\n"
                         "3 of 4 pods fit; idle GPUs: 6 before, 0 after\n"))
      << text.out;
}

TEST_F(PlanCommands, NodesMayComeAndGo) {
  const Outcome more = Ask({"--add-nodes", "1", "--like", "n1", "--json"});
  EXPECT_EQ(more.code, 0) << more.err;
  const Json told = Json::parse(more.out);
  EXPECT_EQ(told["fitting"], 4);
  EXPECT_EQ(told["nodes"]["added"], Json::array({"n1-new-1"}));
  EXPECT_NE(Ask({"--remove", "n2"}).out.find("1 node removed: no pod ran there"),
            std::string::npos);
  const Outcome unknown = Ask({"--remove", "n9"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("remove[0]: want the name of a node, got \"n9\""), std::string::npos)
      << unknown.err;
}

constexpr char kShape[] = R"(apiVersion: v1
kind: Node
metadata:
  labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
status:
  allocatable: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}
)";

TEST_F(PlanCommands, NodesMayComeThatAreDescribedInAFile) {
  const std::string shape = folder_.WriteText("shape.yaml", kShape);
  const Outcome more =
      Ask({"--add-nodes", "1", "--like", shape, "--add-nodes", "2", "--like", "n1", "--json"});
  EXPECT_EQ(more.code, 0) << more.err;
  const Json told = Json::parse(more.out);
  EXPECT_EQ(told["nodes"]["added"], Json::array({"node-new-1", "n1-new-1", "n1-new-2"}));
  EXPECT_EQ(told["fitting"], 4);
  const std::string cluster = folder_.WriteText("cluster2.json", kCluster);
  const Outcome on_file =
      RunPlan({"-f", pods_, "--cluster", cluster, "--add-nodes", "1", "--like", shape, "--json"});
  EXPECT_EQ(Json::parse(on_file.out)["nodes"]["added"], Json::array({"node-new-1"}));
}

TEST_F(PlanCommands, QuoteAnInvalidShapeAsItWasGiven) {
  const std::string pod = folder_.WriteText("pod.json", R"({"kind":"Pod"})");
  EXPECT_NE(Ask({"--add-nodes", "1", "--like", pod})
                .err.find("--like " + pod + ": kind: want Node, got \"Pod\""),
            std::string::npos)
      << Ask({"--add-nodes", "1", "--like", pod}).err;
  EXPECT_NE(Ask({"--add-nodes", "1", "--like", "n7"})
                .err.find("--like n7: want the name of a node, got \"n7\""),
            std::string::npos);
  EXPECT_NE(Ask({"--add-nodes", "1", "--like", "./none"}).err.find("./none: cannot be read"),
            std::string::npos);
  const std::string two = folder_.WriteText("two.yml", std::string(kShape) + "---\n" + kShape);
  EXPECT_EQ(Ask({"--add-nodes", "1", "--like", two}).err,
            "berth: --like " + two + ": want one Node, got 2 documents\n");
  const std::string text = folder_.WriteText("text.yml", "n1\n");
  EXPECT_EQ(Ask({"--add-nodes", "1", "--like", text}).err,
            "berth: --like " + text + ": want a Node\n");
  EXPECT_EQ(RunPlan({"-f", "-", "--add-nodes", "1", "--like", "-"}).err,
            "berth: plan: want standard input (-) only once\n");
}

TEST_F(PlanCommands, AFileIsPlannedOnWithoutAServer) {
  const std::string cluster = folder_.WriteText("cluster2.json", kCluster);
  const Outcome on_file = RunPlan({"-f", pods_, "--cluster", cluster});
  EXPECT_EQ(on_file.code, 0) << on_file.err;
  EXPECT_EQ(on_file.out, Ask({}).out) << "the server says the same";
}

TEST_F(PlanCommands, WhatKubectlPrintsOfNodesAndPodsIsACluster) {
  const std::string listed = R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n1","labels":{"nvidia.com/gpu.product":"Tesla-T4"}},
     "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110","nvidia.com/gpu":"4"},
               "conditions":[{"type":"Ready","status":"True"}]}},
    {"kind":"Pod","metadata":{"name":"a","namespace":"team","uid":"1"},
     "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
     "status":{"phase":"Running"}},
    {"kind":"Pod","metadata":{"name":"b","namespace":"team","uid":"2"},
     "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
     "status":{"phase":"Succeeded"}}]})";
  const std::string cluster = folder_.WriteText("kubectl.json", listed);
  const Outcome told = RunPlan({"-f", pods_, "--cluster", cluster, "--json"});
  EXPECT_EQ(told.code, 0) << told.err;
  const Json json = Json::parse(told.out);
  EXPECT_EQ(json["before"][0]["idle"], 2);
  EXPECT_EQ(json["fitting"], 2);
}

constexpr char kWaiting[] = R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"n1","labels":{"nvidia.com/gpu.product":"Tesla-T4",
                               "cloud.google.com/gke-nodepool":"t4"}},
     "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110","nvidia.com/gpu":"4"},
               "conditions":[{"type":"Ready","status":"True"}]}},
    {"kind":"Pod","metadata":{"name":"a","namespace":"team","uid":"1"},
     "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
     "status":{"phase":"Running"}},
    {"kind":"Pod","metadata":{"name":"b","namespace":"team","uid":"2"},
     "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
     "status":{"phase":"Pending"}},
    {"kind":"Pod","metadata":{"name":"c","namespace":"team","uid":"3"},
     "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]},
     "status":{"phase":"Pending"}}]})";

TEST_F(PlanCommands, WhatPoolsWouldTakeOfThePodsThatWait) {
  const std::string cluster = folder_.WriteText("waiting.json", kWaiting);
  const Outcome told = RunPlan({"--grow", "2", "--cluster", cluster});
  EXPECT_EQ(told.out,
            "2 pods wait, for 12 GPUs\n"
            "pool t4 (1 node of 4 GPUs, Tesla-T4): 1 to 2 more nodes take 1 pod (4 GPUs)\n"
            "No pool takes 1 pod, even if no other waited: team/c\n")
      << told.err;
  EXPECT_EQ(Json::parse(RunPlan({"--grow", "2", "--cluster", cluster, "--json"}).out)["nowhere"],
            Json::array({"team/c"}));
}

// AKS without GPU Feature Discovery, with a pool of a machine type of its own and one at zero.
constexpr char kAks[] = R"({"kind":"List","items":[
    {"kind":"Node","metadata":{"name":"aks-h100-0","labels":{"agentpool":"h100",
                               "node.kubernetes.io/instance-type":"Standard_ND96isr_H100_v5"}},
     "status":{"allocatable":{"cpu":"96","memory":"1800Gi","nvidia.com/gpu":"8"}}},
    {"kind":"Node","metadata":{"name":"hq-0","labels":{"node.kubernetes.io/instance-type":"HQ_L40S"}},
     "status":{"allocatable":{"cpu":"64","memory":"500Gi","nvidia.com/gpu":"4"}}},
    {"kind":"Pod","metadata":{"name":"full","namespace":"team","uid":"1"},
     "spec":{"nodeName":"aks-h100-0","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]},
     "status":{"phase":"Running"}},
    {"kind":"Pod","metadata":{"name":"render","namespace":"team","uid":"2",
                              "annotations":{"berth.dev/gpu-model":"NVIDIA-L40S"}},
     "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
     "status":{"phase":"Pending"}},
    {"kind":"Pod","metadata":{"name":"train","namespace":"team","uid":"3","creationTimestamp":"2026-01-01T00:00:00Z",
                              "annotations":{"berth.dev/gpu-model":"NVIDIA-H200"}},
     "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"8"}}}]},
     "status":{"phase":"Pending"}},
    {"kind":"Pod","metadata":{"name":"serve","namespace":"team","uid":"4"},
     "spec":{"nodeSelector":{"nvidia.com/gpu.product":"NVIDIA-H200"},
             "containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
     "status":{"phase":"Pending"}},
    {"kind":"Pod","metadata":{"name":"picky","namespace":"team","uid":"5"},
     "spec":{"nodeSelector":{"agentpool":"h200"},
             "containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
     "status":{"phase":"Pending"}}]})";

TEST_F(PlanCommands, EstimateAPoolWithoutNodesByItsMachineType) {
  const std::string cluster = folder_.WriteText("aks.json", kAks);
  const std::string config = folder_.WriteText(
      "types.yaml",
      "machineTypes: [{name: HQ_L40S, gpus: 4, model: NVIDIA-L40S, memoryMib: 46068}]");
  const auto grow = [&](const std::string& types) {
    return RunPlan(
        {"--grow", "2", "--cluster", cluster, "--config", config, "--machine-type", types});
  };
  const Outcome told = grow("Standard_ND96isr_H200_v5,HQ_L40S");
  EXPECT_EQ(
      told.out,
      "4 pods wait, for 15 GPUs; 1 fits on the present nodes\n"
      "pool HQ_L40S (1 node of 4 GPUs, NVIDIA-L40S): 2 more nodes take none of them\n"
      "pool h100, Standard_ND96isr_H100_v5 (1 node of 8 GPUs, NVIDIA-H100-80GB-HBM3): 2 more "
      "nodes take none of them\n"
      "machine type Standard_ND96isr_H200_v5 (no node yet, 8 GPUs, NVIDIA-H200): 1 node takes 1 "
      "pod (8 GPUs), 2 take 2 pods (10 GPUs)\n"
      "machine type HQ_L40S (no node yet, 4 GPUs, NVIDIA-L40S): 2 nodes take none of them\n"
      "  assumed of a machine type: CPU, memory and disk for all pods, no labels but machine type, "
      "linux and GPU model, no taints, no MIG, no agent for shares of GPUs\n"
      "No pool takes 1 pod, even if no other waited: team/picky\n")
      << told.err;
  EXPECT_EQ(grow("HQ_L40").err,
            "berth: --machine-type: want a machine type that is known, got \"HQ_L40\"; nearest: "
            "HQ_L40S, a10-45, a10-90\n");
  EXPECT_EQ(RunPlan({"-f", pods_, "--cluster", cluster, "--machine-type", "HQ_L40S"}).code, 2);
}

TEST_F(PlanCommands, WhatPoolsWouldTakeOfThePodsOfAFile) {
  const Outcome told = Ask({"--grow", "1"});
  EXPECT_EQ(told.out,
            "Left out: Service team/web: Berth knows no pods that it makes\n"
            "4 pods asked about, for 7 GPUs; 3 fit on the present nodes\n"
            "pool A100 x2 (1 node of 2 GPUs, A100): 1 more node takes 1 pod (1 GPU)\n"
            "pool A100 x4 (1 node of 4 GPUs, A100): 1 more node takes 1 pod (1 GPU)\n")
      << told.err;
}

TEST_F(PlanCommands, OnAnEmbeddedClusterNoPodWaits) {
  const std::string server = "http://127.0.0.1:" + std::to_string(port_);
  EXPECT_EQ(RunPlan({"--grow", "1", "--server", server}).out, "no pod waits\n");
}

constexpr char kGang[] = R"(apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g, namespace: team}
spec: {minMember: 3}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {labels: {scheduling.x-k8s.io/pod-group: g}}
    spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2}}}]}
)";

TEST_F(PlanCommands, AGangStartsWithTheMinimumOfItsPodGroup) {
  const std::string gang = folder_.WriteText("gang.yaml", kGang);
  const std::string server = "http://127.0.0.1:" + std::to_string(port_);
  const Outcome told = RunPlan({"-f", gang, "--server", server});
  EXPECT_TRUE(told.out.starts_with("Job team/train: 3 of 4 pods fit: ")) << told.out << told.err;
  const Outcome less = RunPlan({"-f", gang, "--server", server, "--remove", "n1"});
  EXPECT_NE(less.out.find("its gang team/g needs 3 of these 4 pods at once; never on these nodes"),
            std::string::npos)
      << less.out;
}

TEST_F(PlanCommands, ObjectsThatNameNoNamespaceAreInTheNamespaceThatIsAsked) {
  std::string text = kGang;
  for (std::size_t at = text.find(", namespace: team"); at != text.npos;
       at = text.find(", namespace: team")) {
    text.erase(at, std::string(", namespace: team").size());
  }
  const std::string gang = folder_.WriteText("gang.yaml", text);
  const std::string server = "http://127.0.0.1:" + std::to_string(port_);
  const Outcome there = RunPlan({"-f", gang, "-f", pods_, "-n", "lab", "--server", server});
  EXPECT_TRUE(there.out.starts_with("Job lab/train: 3 of 4 pods fit: ")) << there.out << there.err;
  EXPECT_NE(there.out.find("Pod team/train: "), std::string::npos) << there.out;
  const Outcome plain = RunPlan({"-f", gang, "--server", server});
  EXPECT_TRUE(plain.out.starts_with("Job default/train: 3 of 4 pods fit: ")) << plain.out;
  EXPECT_EQ(RunPlan({"-f", gang, "-n", "Not/AName", "--server", server}).err,
            "berth: " + server + ": namespace: want the name of a namespace\n");
}

TEST_F(PlanCommands, WrongFlagsAndFilesAreAFailure) {
  EXPECT_EQ(RunPlan({}).code, 2);
  EXPECT_EQ(Ask({"--add-nodes", "0", "--like", "n1"}).code, 2);
  EXPECT_EQ(Ask({"--like", "n1"}).err,
            "berth: plan: want one --like for each --add-nodes, got 1 and 0\n");
  EXPECT_EQ(RunPlan({"-f", pods_, "--cluster", "x", "--server", "y"}).code, 2);
  EXPECT_EQ(RunPlan({"-f", folder_.WriteText("bad.yaml", "a: [\n")}).code, 1);
  EXPECT_EQ(RunPlan({"-f", "/none"}).code, 1);
  for (const char* text :
       {"{}\n{}\n", "NAME  READY\nx     1/1\n", "{\"type\":\"ADDED\",\"object\":{}}"}) {
    const Outcome wrong = RunPlan({"-f", folder_.WriteText("pods", text)});
    EXPECT_EQ(wrong.code, 1) << text;
    EXPECT_NE(wrong.err.find("want the JSON or YAML of pods, got "), std::string::npos)
        << wrong.err;
  }
}

// YAML may begin as JSON does.
TEST_F(PlanCommands, YamlInBracesIsRead) {
  const std::string job = folder_.WriteText(
      "braces.yaml",
      "{apiVersion: batch/v1, kind: Job, metadata: {name: one, namespace: team}, spec: {template: "
      "{spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}\n");
  const std::string server = "http://127.0.0.1:" + std::to_string(port_);
  const Outcome told = RunPlan({"-f", job, "--server", server});
  EXPECT_TRUE(told.out.starts_with("Job team/one: fits on ")) << told.out << told.err;
}

TEST_F(PlanCommands, ManyPlansLeaveStateAndCountersAsTheyWere) {
  RawClient client = berth_.Connect();
  berth::test::Ask(client, "filter", ArgsFor("1", 2));
  const auto counters = [&client] {
    std::string all = Get(client, "/metrics"), kept;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      const std::string line = all.substr(at, end - at);
      // What HTTP and the process themselves take goes on.
      const bool is_own = line.starts_with("berth_") && !line.starts_with("berth_http_") &&
                          !line.starts_with("berth_held_") && line.find("_seconds") == line.npos;
      if (is_own) kept += line + "\n";
      at = end + 1;
    }
    return kept;
  };
  const std::string snapshot = Get(client, "/debug/snapshot"), before = counters();
  EXPECT_NE(before.find("berth_"), std::string::npos);
  const std::string request =
      R"({"pods":[{"spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}],
          "add":[{"like":"n1"}],"remove":["n2"]})";
  for (int i = 0; i < 200; ++i) {
    client.Send(Post("/plan", request));
    ASSERT_EQ(client.Read().status, 200);
  }
  EXPECT_EQ(Get(client, "/debug/snapshot"), snapshot);
  EXPECT_EQ(counters(), before);
}

}  // namespace
}  // namespace berth::test::plan_cli_test
