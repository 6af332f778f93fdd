// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/replay.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/replay/engine_placer.h"
#include "bench/replay/engine_session.h"
#include "scoring/registry.h"

namespace berth::replay::replay_test {
namespace {

// Answers what the test gives it, in order.
class ScriptedPlacer final : public Placer {
 public:
  explicit ScriptedPlacer(std::vector<Result<bool>> answers) : answers_(std::move(answers)) {}
  Result<std::optional<Placement>> Place(const PodRequest& pod) override {
    pods.push_back(pod);
    BERTH_TRY(const bool placed, answers_.at(pods.size() - 1));
    if (!placed) return std::nullopt;
    return Placement{"0.a", 0, 0, {{static_cast<int>(pods.size()) - 1}}};
  }
  std::vector<PodRequest> pods;

 private:
  std::vector<Result<bool>> answers_;
};

const std::vector<TraceNode> kFourGpus = {{"a", 64'000, 1024, 4, "T4"}};
const std::vector<TraceTask> kTasks = {
    {"half", 1000, 1, 1, 500, ""}, {"one", 1000, 1, 1, 1000, "T4"}, {"none", 1000, 1, 0, 0, ""}};

TEST(RunReplay, DrawsThePointsOfTheCurve) {
  ScriptedPlacer placer({true, true, false, true, true});
  // Arrived: 12.5, 37.5, 62.5, 75, 75 %; allocated: 12.5, 37.5, 37.5, 50, 50 %.
  const Arrivals arrivals{{0, 1, 1, 0, 2}, {0}};
  std::vector<std::size_t> progress;
  const auto result = RunReplay(
      kFourGpus, kTasks, arrivals, placer,
      [&progress](std::size_t done, std::size_t all) { progress.push_back(done * 10 + all); });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->gpus_total, 4);
  EXPECT_EQ(result->placed, 4);
  EXPECT_EQ(result->refused, 1);
  EXPECT_EQ(result->allocated_milli, 2000);
  EXPECT_EQ(result->decision_us.size(), 5U);
  EXPECT_EQ(progress, (std::vector<std::size_t>{15, 25, 35, 45, 55}));
  std::set<std::size_t> points;
  for (std::size_t x = 0; x < result->allocated_pct.size(); ++x) {
    if (result->allocated_pct[x]) points.insert(x);
  }
  EXPECT_EQ(points, (std::set<std::size_t>{12, 38, 62, 75})) << "halves go to the even neighbour";
  EXPECT_EQ(result->allocated_pct[12], 12.5);
  EXPECT_EQ(result->allocated_pct[38], 37.5);
  EXPECT_EQ(result->allocated_pct[62], 37.5);
  EXPECT_EQ(result->allocated_pct[75], 50.0);
}

TEST(RunReplay, TakesTheMeanOfReadingsAtOnePoint) {
  ScriptedPlacer placer({true, false, true});
  // Three arrivals at 0.1 % each of 1000 GPUs: all at point 0.
  const std::vector<TraceNode> many(125, TraceNode{"a", 1, 1, 8, ""});
  const std::vector<TraceTask> tasks = {{"one", 1, 1, 1, 1000, ""}};
  const auto result = RunReplay(many, tasks, {{0, 0, 0}, {}}, placer, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_NEAR(result->allocated_pct[0].value(), (0.1 + 0.1 + 0.2) / 3, 0.005);
}

TEST(RunReplay, TellsWhereEveryPodWent) {
  ScriptedPlacer placer({true, false, true});
  PodStarts starts;
  ASSERT_TRUE(RunReplay(kFourGpus, kTasks, {{0, 1, 1}, {0}}, placer, {}, &starts));
  ASSERT_EQ(starts.size(), 3U);
  EXPECT_EQ(starts[0].node, "a") << "as the trace has it";
  EXPECT_EQ(starts[1].node, "");
  EXPECT_EQ(starts[2].gpus, std::vector<int>{2});
}

TEST(RunReplay, EndsWithTheErrorOfThePlacer) {
  ScriptedPlacer placer({true, Fail(Errc::kUnavailable, "gone"), true});
  const auto result = RunReplay(kFourGpus, kTasks, {{0, 0, 0}, {0}}, placer, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "gone");
  EXPECT_EQ(placer.pods.size(), 2U);
}

TEST(RunReplay, NeedsAGpu) {
  ScriptedPlacer placer({});
  const std::vector<TraceNode> none = {{"a", 1, 1, 0, ""}};
  EXPECT_EQ(RunReplay(none, kTasks, {{}, {0}}, placer, {}).error().message,
            "nodes: want at least one GPU, got none");
}

TEST(PodOf, MakesEveryArrivalAPodOfItsOwn) {
  const PodRequest pod = PodOf(kTasks[0], 17);
  EXPECT_EQ(pod.id, (PodId{"uid-half-17", "trace", "half-17"}));
  EXPECT_EQ(pod.shape, ToShape(kTasks[0]));
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_EQ(pod.containers[0].gpus, (GpuAsk{GpuShare{500, 0}}));
  EXPECT_TRUE(PodOf(kTasks[2], 0).containers.empty()) << "no GPU, no container to tell of";
}

TEST(OrderedNodes, NamesNodesSoThatTheirOrderIsTheRank) {
  std::vector<TraceNode> nodes;
  Arrivals arrivals;
  for (std::size_t i = 0; i < 12; ++i) {
    nodes.push_back({"x" + std::to_string(i), 1, 1, 1, ""});
    arrivals.node_rank.push_back(11 - i);
  }
  const std::vector<NodeSpec> specs = OrderedNodes(nodes, arrivals);
  EXPECT_EQ(specs[0].name, "11.x0");
  EXPECT_EQ(specs[11].name, "00.x11");
  for (std::size_t i = 1; i < specs.size(); ++i) EXPECT_GT(specs[i - 1].name, specs[i].name);
}

TEST(TieBreaker, DrawsOnlyForAPolicyThatLeavesTheChoiceOpen) {
  for (const ProfileSpec& spec : BuiltinProfiles()) {
    const Profile profile = BuildProfile(spec, {}).value();
    TieBreaker ties(profile, 1);
    std::set<std::size_t> picked;
    for (int i = 0; i < 100; ++i) picked.insert(ties.Pick(3));
    const bool open = spec.name == "random";
    EXPECT_EQ(picked, open ? (std::set<std::size_t>{0, 1, 2}) : std::set<std::size_t>{0})
        << spec.name;
  }
}

TEST(EngineSession, PlacesATaskByItsClassAndRefusesAnUnknownOne) {
  Workload workload;
  workload.nodes = {{"a", 64'000, 1000, 4, "T4"}, {"b", 64'000, 1000, 4, "T4"}};
  workload.nodes[1].traits = {"spot"};
  workload.tasks = {kTasks[1]};
  workload.tasks[0].workload_class = "batch";
  ReplayPolicy policy = PolicyNamed("expected-waste").value();
  for (const auto& [weight, node] : {std::pair(50, "1.b"), std::pair(-50, "0.a")}) {
    policy.classes = {{"batch", {{}, {}, {{"spot", weight}}}}};
    const auto session = EngineSession::Create(policy, workload, {{0}, {0, 1}}, 1);
    ASSERT_TRUE(session) << session.error().message;
    const auto placed = (*session)->placer().Place(PodOf(workload.tasks[0], 0));
    EXPECT_EQ(placed.value()->node, node);
  }
  policy.classes = {{"training", {}}, {"inference", {}}};
  EXPECT_EQ(
      EngineSession::Create(policy, workload, {{0}, {0, 1}}, 1).error().message,
      "task " + kTasks[1].name + ": column class: want one of inference, training, got \"batch\"");
}

TEST(EnginePlacer, HoldsWhatItPlacedAndRefusesWhatDoesNotFit) {
  Engine engine(BuildProfile(*FindBuiltinProfile("first-fit"), {}).value());
  EnginePlacer placer(engine, OrderedNodes(kFourGpus, {{}, {0}}), 1);
  for (std::size_t n = 0; n < 4; ++n)
    EXPECT_TRUE(placer.Place(PodOf(kTasks[1], n)).value().has_value()) << n;
  EXPECT_FALSE(placer.Place(PodOf(kTasks[1], 4)).value().has_value());
  EXPECT_TRUE(placer.Place(PodOf(kTasks[2], 5)).value().has_value())
      << "a pod without GPU still fits";
  const ClusterState::Contents contents = placer.state().Everything();
  EXPECT_EQ(contents.snapshot->node(0).free_gpu_milli(), 0);
  ASSERT_EQ(contents.pods.size(), 5U);
  for (const PodRecord& record : contents.pods) EXPECT_EQ(record.state, PodState::kBound);
}

}  // namespace
}  // namespace berth::replay::replay_test
