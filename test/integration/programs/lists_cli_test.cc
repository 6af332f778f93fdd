// SPDX-License-Identifier: Apache-2.0
//
// `berth explain waiting` and `berth explain nodes`: a line each of what is said of one; and what
// `berth plan` says of all that wait.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/running_berth.h"

namespace berth::test::lists_cli_test {
namespace {

Json NodeOf(const std::string& name, int gpus, const std::string& driver = "550") {
  Json node = {{"kind", "Node"}, {"apiVersion", "v1"}, {"spec", Json::object()}};
  node["metadata"]["name"] = name;
  node["metadata"]["labels"] = {{"nvidia.com/gpu.product", "Tesla-T4"},
                                {"nvidia.com/cuda.driver.major", driver}};
  node["status"]["capacity"]["nvidia.com/gpu"] = std::to_string(gpus);
  node["status"]["allocatable"] = {{"cpu", "64"},
                                   {"memory", "256Gi"},
                                   {"pods", "110"},
                                   {"nvidia.com/gpu", std::to_string(gpus)}};
  node["status"]["conditions"][0] = {{"type", "Ready"}, {"status", "True"}};
  return node;
}

Json PodOf(const std::string& name, int gpus, const std::string& created, int priority = 0) {
  Json pod = {{"kind", "Pod"}, {"apiVersion", "v1"}, {"status", {{"phase", "Pending"}}}};
  pod["metadata"] = {
      {"name", name}, {"namespace", "ml"}, {"uid", name}, {"creationTimestamp", created}};
  pod["spec"]["priority"] = priority;
  Json& container = pod["spec"]["containers"][0];
  container["name"] = "c";
  container["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  return pod;
}

class Lists : public testing::Test {
 protected:
  Outcome Ask(const Json& items, const std::vector<std::string>& what) {
    std::vector<std::string> words = {"explain"};
    words.insert(words.end(), what.begin(), what.end());
    return Run(items, words);
  }
  Outcome Run(const Json& items, std::vector<std::string> words) {
    const Json list = {{"kind", "List"}, {"apiVersion", "v1"}, {"items", items}};
    words.insert(words.end(), {"--cluster", folder_.WriteText("c.json", list.dump())});
    return RunProgram("berth", words);
  }
  Json Waiting(const Json& items) { return Json::parse(Ask(items, {"waiting", "--json"}).out); }

 private:
  const TemporaryFolder folder_;
};

TEST_F(Lists, WhoWaitsComesInTheOrderInWhichTheyAreServed) {
  Json gated = PodOf("gated", 1, "2026-01-01T00:00:00Z", 9);
  gated["spec"]["schedulingGates"] = {{{"name", "quota"}}};
  const Json items = {NodeOf("n", 2), gated, PodOf("late", 4, "2026-01-03T00:00:00Z"),
                      PodOf("first", 4, "2026-01-04T00:00:00Z", 5),
                      PodOf("early", 1, "2026-01-02T00:00:00Z")};
  const Outcome text = Ask(items, {"waiting"});
  EXPECT_EQ(text.code, 0) << text.err;
  std::vector<std::size_t> at = {text.out.find("WAITS"), text.out.find("pod ml/first"),
                                 text.out.find("pod ml/early"), text.out.find("pod ml/late"),
                                 text.out.find("pod ml/gated")};
  EXPECT_TRUE(std::ranges::is_sorted(at) && at.back() != std::string::npos) << text.out;
  const Json told = Waiting(items);
  EXPECT_EQ(told["more"], 0);
  EXPECT_EQ(told["waiting"][2]["asks"], "4 GPUs");
  EXPECT_GT(told["waiting"][2]["age_seconds"], 86'400);
  EXPECT_TRUE(told["waiting"][3]["sentence"].get<std::string>().starts_with("scheduling gates"));
  for (const Json& unit : told["waiting"]) {
    const std::string name = unit["pod"];
    const std::string line = name + ": " + unit["sentence"].get<std::string>() + "\n";
    EXPECT_TRUE(Ask(items, {"pod", name}).out.starts_with(line)) << line;
  }
}

TEST_F(Lists, AGangHasOneLineInItsOwnWords) {
  Json items = {NodeOf("n", 2), PodOf("alone", 2, "2026-01-09T00:00:00Z")};
  for (int i = 0; i < 2; ++i) {
    Json member = PodOf("train-" + std::to_string(i), 2, "2026-01-02T00:00:00Z");
    member["metadata"]["annotations"] = {{"berth.dev/gang", "train"}, {"berth.dev/gang-size", "2"}};
    items.push_back(member);
  }
  const Json told = Waiting(items)["waiting"];
  ASSERT_EQ(told.size(), 2U) << told;
  EXPECT_EQ(told[0]["gang"], "ml/train");
  EXPECT_EQ(told[0]["asks"], "2 pods with 2 GPUs");
  EXPECT_EQ(told[1]["pod"], "ml/alone");
  const std::string gang = Ask(items, {"gang", "ml/train"}).out;
  EXPECT_NE(gang.find(": " + told[0]["sentence"].get<std::string>() + "\n"), std::string::npos)
      << gang << told;
}

// Its places are planned, and its binds have not come.
TEST_F(Lists, AGangThatFitsWaitsTooAndNeedsNoNodeAndNoMove) {
  Json items = {NodeOf("n", 2), NodeOf("m", 2), PodOf("alone", 2, "2026-01-09T00:00:00Z")};
  for (int i = 0; i < 2; ++i) {
    Json member = PodOf("train-" + std::to_string(i), 2, "2026-01-02T00:00:00Z");
    member["metadata"]["annotations"] = {{"berth.dev/gang", "train"}, {"berth.dev/gang-size", "2"}};
    items.push_back(member);
  }
  EXPECT_EQ(Run(items, {"plan", "--grow", "1"}).out,
            "3 pods wait, for 6 GPUs; 2 fit on the present nodes\n"
            "pool Tesla-T4 x2 (2 nodes of 2 GPUs, Tesla-T4): 1 more node takes 1 pod (2 GPUs)\n");
  const std::string room = Run(items, {"plan", "--make-room"}).out;
  EXPECT_TRUE(
      room.starts_with("gang ml/train fits without a move\n"
                       "  then ml/train-0 fits on m with GPU 0, GPU 1\n"
                       "  then ml/train-1 fits on n with GPU 0, GPU 1\n"
                       "No moves make room for ml/alone: "))
      << room;
  EXPECT_TRUE(room.ends_with(
      "0 moves make room for 0 of 2 goals; 1 needs no move; for 1 no plan was found\n"))
      << room;
  EXPECT_EQ(Run(items, {"plan", "--make-room", "--for", "ml/train"}).code, 0);
  // Without one of its nodes it has no place, and is asked about as any other.
  const std::string less = Run(items, {"plan", "--grow", "1", "--remove", "m"}).out;
  EXPECT_NE(less.find("3 pods wait, for 6 GPUs; 1 fits on the present nodes\n"), less.npos) << less;
}

// Nodes do not help it.
TEST_F(Lists, OfAGangWhosePodsDoNotAllExistThatIsSaid) {
  Json items = {NodeOf("n", 2)};
  for (int i = 0; i < 2; ++i) {
    Json member = PodOf("train-" + std::to_string(i), 1, "2026-01-02T00:00:00Z");
    member["metadata"]["annotations"] = {{"berth.dev/gang", "train"}, {"berth.dev/gang-size", "3"}};
    items.push_back(member);
  }
  const std::string told = Run(items, {"plan", "--grow", "1"}).out;
  EXPECT_TRUE(
      told.ends_with("No pool takes 2 pods, even if no other waited: ml/train-0 (its gang "
                     "ml/train needs 3 pods: the plan has 2, and 0 have a node), "
                     "ml/train-1\n"))
      << told;
}

TEST_F(Lists, ALongListSaysHowManyMoreWait) {
  Json items = {NodeOf("n", 2)};
  for (int i = 0; i < 53; ++i) items.push_back(PodOf("p" + std::to_string(i), 4, ""));
  EXPECT_EQ(Waiting(items)["waiting"].size(), 50U);
  EXPECT_TRUE(Ask(items, {"waiting"}).out.ends_with("\nand 3 more\n"));
  EXPECT_EQ(Ask(Json::array({NodeOf("n", 2)}), {"waiting"}).out, "no pod waits for GPUs\n");
}

TEST_F(Lists, NodesThatAreNotFineAreNamedWithTheReason) {
  Json cordoned = NodeOf("cordoned", 2), unready = NodeOf("unready", 2), sick = NodeOf("sick", 4),
       full = NodeOf("full", 2), empty = NodeOf("without", 0), old = NodeOf("old", 2, "535");
  cordoned["spec"]["unschedulable"] = true;
  unready["status"]["conditions"][0]["status"] = "False";
  sick["metadata"]["annotations"] = {{"berth.dev/gpu-uuids", "GPU-a,GPU-b,GPU-c,GPU-d"},
                                     {"berth.dev/gpu-health", "GPU-c"}};
  full["spec"]["taints"] = {{{"key", "node.kubernetes.io/disk-pressure"}, {"effect", "NoSchedule"}},
                            {{"key", "nvidia.com/gpu"}, {"effect", "NoSchedule"}}};
  Json holder = PodOf("holder", 1, "");
  holder["spec"]["nodeName"] = "sick";
  holder["metadata"]["annotations"] = {
      {"berth.dev/devices",
       R"({"version":1,"node":"sick","containers":{"c":{"gpus":[{"index":2,"milli":1000}]}}})"}};
  empty["metadata"]["labels"] = {{"nvidia.com/gpu.present", "true"}};
  const Json items = {
      NodeOf("fine", 2), NodeOf("well", 2), cordoned, unready, sick, full, empty, old, holder};
  const Outcome text = Ask(items, {"nodes"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("2 of 8 GPU nodes are fine\n")) << text.out;
  const Json told = Json::parse(Ask(items, {"nodes", "--json"}).out);
  EXPECT_EQ(told["fine"], 2);
  const std::vector<std::pair<std::string, std::vector<std::string>>> want = {
      {"cordoned", {"cordoned"}},
      {"full", {"taint node.kubernetes.io/disk-pressure:NoSchedule"}},
      {"old", {"driver 535.0, other nodes with this GPU model have 550.0"}},
      {"sick",
       {"unhealthy GPUs by annotation berth.dev/gpu-health",
        "GPU 2: unhealthy; held by ml/holder"}},
      {"unready", {"not ready"}},
      {"without", {"its device plugin is gone, or offers no GPU"}}};
  ASSERT_EQ(told["nodes"].size(), want.size()) << told;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(told["nodes"][i]["node"], want[i].first);
    EXPECT_EQ(told["nodes"][i]["notes"], Json(want[i].second));
  }
  EXPECT_TRUE(Ask(items, {"node", "cordoned"}).out.starts_with("cordoned: Tesla-T4, cordoned\n"));
  EXPECT_EQ(Ask(items, {"nodes", "sick"}).out, Ask(items, {"node", "sick"}).out);
  EXPECT_TRUE(Ask(Json::array({sick}), {"nodes"}).out.starts_with("0 of 1 GPU node is fine\n"));
  EXPECT_EQ(Ask(items, {"nodes/sick"}).out, Ask(items, {"node", "sick"}).out);
}

TEST_F(Lists, ANodeSaysOfItselfWhatTheListSays) {
  Json fractions = NodeOf("fractions", 2);
  fractions["status"]["conditions"][1] = {{"type", "gpu-fractioning.nvidia.com/Ready"},
                                          {"status", "False"}};
  const Json items = {NodeOf("a", 2), NodeOf("b", 2), NodeOf("old", 2, "535"), fractions};
  const Json told = Json::parse(Ask(items, {"nodes", "--json"}).out);
  ASSERT_EQ(told["nodes"].size(), 2U) << told;
  const std::string agent =
      "agent gpu-fractioning is not ready, as its condition says: the node takes no GPU shares";
  EXPECT_EQ(told["nodes"][0]["notes"], Json({agent}));
  for (const Json& row : told["nodes"]) {
    const std::string name = row["node"], note = row["notes"][0];
    EXPECT_NE(Ask(items, {"node", name}).out.find("\n  " + note + "\n"), std::string::npos) << note;
    EXPECT_EQ(Json::parse(Ask(items, {"node", name, "--json"}).out)["notes"], row["notes"]);
  }
  fractions["status"]["conditions"][1]["status"] = "True";
  EXPECT_EQ(Json::parse(Ask(Json::array({fractions}), {"nodes", "--json"}).out)["fine"], 1);
}

TEST_F(Lists, NothingInANameMovesTheCursorOrBeginsALine) {
  Json items = {NodeOf("n", 2), PodOf("p\x1b[31m", 4, "")};
  for (int i = 0; i < 2; ++i) {
    Json member = PodOf("g-" + std::to_string(i), 2, "");
    member["metadata"]["annotations"] = {{"berth.dev/gang", "g\x1b[2J\nfine"},
                                         {"berth.dev/gang-size", "2"}};
    items.push_back(member);
  }
  Json refused = PodOf("refused", 1, "");
  refused["metadata"]["annotations"] = {{"berth.dev/gang", "h"},
                                        {"berth.dev/gang-size", "\x1b[1m\nfine"}};
  items.push_back(refused);
  for (const auto& words :
       {std::vector<std::string>{"waiting"}, {"pod", "ml/refused"}, {"pod", "ml/g-0"}}) {
    const std::string out = Ask(items, words).out;
    EXPECT_EQ(out.find('\x1b'), std::string::npos) << words.back();
    EXPECT_EQ(out.find("\nfine"), std::string::npos) << words.back();
    EXPECT_NE(out.find(words[0] == "waiting" ? "ml/g [2J fine" : "["), std::string::npos) << out;
  }
}

TEST_F(Lists, WrongUsageIsExit2AndAFileThatIsNotThereExit1) {
  EXPECT_EQ(Ask(Json::array(), {"waiting", "ml/a"}).code, 2);
  EXPECT_EQ(RunProgram("berth", {"explain", "waiting", "--cluster", "/no/file"}).code, 1);
  EXPECT_EQ(RunProgram("berth", {"explain", "nodes", "--cluster", "/no/file"}).code, 1);
}

}  // namespace
}  // namespace berth::test::lists_cli_test
