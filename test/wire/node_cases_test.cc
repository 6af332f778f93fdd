// SPDX-License-Identifier: Apache-2.0
//
// Public reports about one node and its devices, as rows of data: test/cases/nodes.json. Each row
// names its thread ("source"), what is right and why ("right"), one of the inputs
//
//   node     capacity, allocatable (default: capacity), labels, annotations, "true": a condition
//            that is; "claims": GPUs that ResourceClaims hold, by "uuid" or "index"; "pods" that it
//            has and "asks" of pods that may come: what each asks for, annotations, and "want":
//            fits, or the code of the reason (scoring/reason.h); "lack": what is said of the node
//            or the pod then; "beside": the resources of further containers; of a pod without GPUs
//            "alone": what is said in place of them
//   plan     the resources of a container, and "want": what its refusal says; "" = none
//   file     a text, and "want": what the error says
//   topology lines of a tool's output, and "want": its islands
//
// and of a node what else is "known" of it: gpus, places, free_places, places_gpus, mig_gpus,
// missing, unhealthy, contradiction, problem, says (parts of the texts; the last one of explain
// node). So a report costs one row.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/machine_files/show_topology.h"
#include "bench/machine_files/topo_text.h"
#include "cluster/state/cluster_state.h"
#include "config/load.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"
#include "scoring/judgement.h"
#include "scoring/mig/mig_tables.h"
#include "scoring/reason.h"
#include "scoring/registry.h"
#include "server/why/api_rules.h"
#include "server/why/explain_json.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::node_cases_test {
namespace {

using test::Json;

Json Cases() {
  Json json =
      Json::parse(test::ReadText(test::SourceDir() + "/test/cases/nodes.json"), nullptr, false);
  EXPECT_TRUE(json.is_array()) << "test/cases/nodes.json: want a list";
  return json;
}

Json Texts(const Json& amounts) {
  Json texts = Json::object();
  for (const auto& [name, amount] : amounts.items()) {
    texts[name] = amount.is_string() ? amount : Json(amount.dump());
  }
  return texts;
}

Json NodeOf(const Json& row) {
  const Json& said = row["node"];
  Json capacity = {{"cpu", "64"}, {"memory", "512Gi"}, {"pods", "110"}};
  Json allocatable = capacity;
  capacity.update(Texts(said.value("capacity", Json::object())));
  allocatable.update(Texts(said.contains("allocatable") ? said["allocatable"]
                                                        : said.value("capacity", Json::object())));
  return {{"kind", "Node"},
          {"metadata",
           {{"name", "n1"},
            {"labels", said.value("labels", Json::object())},
            {"annotations", said.value("annotations", Json::object())}}},
          {"spec", {{"taints", said.value("taints", Json::array())}}},
          {"status",
           {{"capacity", capacity},
            {"allocatable", allocatable},
            {"conditions", {{{"type", said.value("true", "Ready")}, {"status", "True"}}}}}}};
}

Json PodOf(const Json& said, const std::string& uid) {
  Json pod = test::PodAsking(uid, Texts(said.value("resources", Json::object())));
  pod["metadata"]["annotations"] = said.value("annotations", Json::object());
  for (const Json& resources : said.value("beside", Json::array())) {
    const std::string name = "c" + std::to_string(pod["spec"]["containers"].size());
    pod["spec"]["containers"].push_back(
        {{"name", name}, {"resources", {{"limits", Texts(resources)}}}});
  }
  if (said.contains("scheduler")) pod["spec"]["schedulerName"] = said["scheduler"];
  return pod;
}

Config ConfigOf(const Json& row) {
  if (!row.contains("config")) return DefaultConfig();
  auto config = LoadConfig(row["config"].get<std::string>(), "config");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *std::move(config) : DefaultConfig();
}

void ExpectKnown(const Json& known, const Node& node, const std::string& problem) {
  const NodeSpec& spec = node.spec();
  const Json found = {{"gpus", spec.gpus.size()},
                      {"places", spec.places.count},
                      {"free_places", node.free_places()},
                      {"places_gpus", spec.places.gpus},
                      {"mig_gpus", spec.mig.known() ? spec.mig->gpus.size() : 0U},
                      {"missing", spec.missing},
                      {"unhealthy", node.unhealthy_gpus()},
                      {"model", spec.gpu_model},
                      {"foreign", spec.places.foreign},
                      {"contradicts", !spec.gpu_contradiction.empty()}};
  for (const auto& [what, wanted] : known.items()) {
    if (what == "problem" || what == "contradiction" || what == "says") {
      const std::string text = what == "problem" ? problem
                               : what == "says"  ? TextOf(ReportOf(node))
                                                 : spec.gpu_contradiction;
      EXPECT_NE(text.find(wanted.get<std::string>()), std::string::npos) << what << ": " << text;
      continue;
    }
    ASSERT_TRUE(found.contains(what)) << what;
    EXPECT_EQ(found[what], wanted) << what << "; " << problem;
  }
}

Reason ReasonOf(const Snapshot& snapshot, const PodRequest& pod) {
  if (!pod.refusal.empty()) return Reason::kPodRefused;
  if (pod.shape.wants_gpu()) return FirstObjection(snapshot.node(0), pod.shape);
  const std::vector<NodeIndex> nodes = {0};
  return ReasonsAnew(snapshot, {.pod = pod, .candidates = nodes, .behind_scheduler = true})[0];
}

// What fits has to be given as well.
void ExpectTaken(const Node& node, const RequestShape& shape) {
  const MigSlices* const ask = shape.mig();
  if (ask == nullptr || !node.spec().mig.known()) return;
  const auto plan = PlanMig(*node.spec().mig, node.mig(), *ask);
  EXPECT_TRUE(!plan || node.CanTake({"n1", 0, 0, {}, plan->grants}));
}

void TryNode(const Json& row) {
  const Config config = ConfigOf(row);
  const DecodedNode decoded = test::ReadNode(NodeOf(row), config);
  ClusterState state;
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{NodeUpserted{decoded.spec}}));
  GpusClaimed claimed{.node = "n1", .gpus = {}};
  for (const Json& said : row.value("claims", Json::array())) {
    ClaimedGpu& gpu = claimed.gpus.emplace_back();
    gpu.claim = "team/claim";
    gpu.uuid = said.value("uuid", "");
    gpu.index = said.value("index", -1);
  }
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{std::move(claimed)}));
  const PodRules rules(dialects::AllDialects(config), config.resources);
  const auto read = [&rules](const Json& pod) {
    auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
    EXPECT_TRUE(observed) << observed.error().message;
    return observed ? *std::move(observed) : ObservedPod();
  };
  int number = 0;
  for (const Json& said : row.value("pods", Json::array())) {
    Json pod = PodOf(said, "held-" + std::to_string(number++));
    pod["spec"]["nodeName"] = "n1";
    ObservedPod observed = read(pod);
    PodBound bound{std::move(observed.pod), std::move(observed.placement)};
    bound.devices_annotated = true;
    ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{std::move(bound)}));
  }
  const auto snapshot = state.Current();
  const Node& node = snapshot->node(0);
  ExpectKnown(row.value("known", Json::object()), node, decoded.problem);
  for (const Json& said : row.value("asks", Json::array())) {
    const PodRequest pod = read(PodOf(said, "asks")).pod;
    const Reason reason = ReasonOf(*snapshot, pod);
    EXPECT_EQ(CodeOf(reason), said["want"].get<std::string>())
        << said["resources"].dump() << " " << pod.refusal;
    if (reason == Reason::kFits) ExpectTaken(node, pod.shape);
    const std::string lack = pod.refusal.empty() ? LackText(node, pod, reason) : pod.refusal;
    EXPECT_NE(lack.find(said.value("lack", "")), std::string::npos) << lack;
    const std::string alone = pod.shape.wants_gpu() ? "" : OfSchedulerAlone(pod);
    EXPECT_NE(alone.find(said.value("alone", "")), std::string::npos) << alone;
  }
}

void TryPlan(const Json& row) {
  const Json pod = {
      {"spec", {{"containers", Json::array({{{"name", "main"}, {"resources", row["plan"]}}})}}}};
  const std::string refused = RefusedByApiServer(pod), want = row["want"];
  if (want.empty()) {
    EXPECT_EQ(refused, "");
  } else {
    EXPECT_NE(refused.find(want), std::string::npos) << refused;
  }
}

void TryFile(const Json& row) {
  const Config config = DefaultConfig();
  const auto read = DecodeCluster(row["file"].get<std::string>(),
                                  NodeRules(config, dialects::AllDialects(config)));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find(row["want"].get<std::string>()), std::string::npos)
      << read.error().message;
}

void TryTopology(const Json& row) {
  std::string text;
  for (const Json& line : row["topology"]) text += line.get<std::string>() + "\n";
  const auto matrix = ParseTopoText(text);
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(Json(IslandsOf(*matrix)), row["want"]);
}

TEST(NodeCases, AreAsTheReportsShouldHaveFoundThem) {
  int rows = 0;
  for (const Json& row : Cases()) {
    SCOPED_TRACE(row["source"].get<std::string>() + ": " + row["right"].get<std::string>());
    ++rows;
    if (row.contains("node")) TryNode(row);
    if (row.contains("plan")) TryPlan(row);
    if (row.contains("file")) TryFile(row);
    if (row.contains("topology")) TryTopology(row);
  }
  EXPECT_GE(rows, 60);
}

}  // namespace
}  // namespace berth::wire::node_cases_test
