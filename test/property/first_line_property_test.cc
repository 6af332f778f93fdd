// SPDX-License-Identifier: Apache-2.0
//
// The first line of an explanation fits into a terminal, whatever the names are and whatever is
// wrong, and says first what is so and then what helps. What it says of a gang is so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scoring/admission.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"
#include "server/extender/gangs/plans/gang_planning.h"
#include "server/why/explain_json.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::first_line_property_test {
namespace {

constexpr std::uint64_t kSeeds = 600;

// Short, as clouds make them, or as long as Kubernetes allows.
std::string AName(RandomWorld& random, const std::string& name) {
  const int kind = random.Between(0, 2);
  if (kind == 0) return name;
  const std::string cloud = "ip-10-0-12-34-" + name + ".eu-central-1.compute.internal";
  return kind == 1 ? cloud : std::string(253 - name.size(), 'x') + name;
}

std::shared_ptr<const Snapshot> AClusterOf(RandomWorld& random) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  std::vector<std::string> names;
  const int nodes = random.Between(1, 4);
  for (int i = 0; i < nodes; ++i) names.push_back(AName(random, "n" + std::to_string(i)));
  for (const std::string& name : names) events.emplace_back(NodeUpserted{random.ANodeNamed(name)});
  for (int i = 0; i < 12; ++i) {
    PodRequest pod = random.APodNumbered(i);
    pod.id.name = AName(random, pod.id.name);
    const std::string node = random.OneOf(names);
    events.emplace_back(PodBound{pod, random.AForeignPlacement(pod.shape, node)});
  }
  EXPECT_TRUE(state.Apply(events));
  return state.Current();
}

TEST(FirstLineProperty, NoFirstLineIsLongerThanATerminal) {
  int nowhere = 0, with_cure = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    std::shared_ptr<const Snapshot> snapshot;
    PodRequest pod;
    if (seed % 3 == 0) {
      World world(seed);
      snapshot = world.Snapshot();
      pod = world.APod();
    } else {
      snapshot = AClusterOf(random);
      pod = random.APodNumbered(100);
      pod.priority = random.Between(0, 1);
    }
    pod.id.name = AName(random, "p");
    Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
    if (random.Chance(10)) pod.refusal = "annotation x: " + std::string(300, 'y');
    if (random.Chance(20))
      pod.id = snapshot->node(0).pods().empty() ? pod.id : snapshot->node(0).pods()[0]->pod.id;
    const PodExplanation told = ExplainPod(engine, {.snapshot = snapshot, .pod = pod});
    const wire::PodReport report{.told = told, .sentence = told.sentence};
    const std::string text = wire::TextOf(report);
    const std::string line = text.substr(0, text.find('\n'));
    ASSERT_LE(line.size(), kLongestLine) << line;
    ASSERT_FALSE(told.sentence.empty());
    if (told.nearest.empty() || told.nearest[0].near.ways.empty()) continue;
    const bool names_node = line.find("nearest is ") != std::string::npos;
    if (!told.lacking.empty() && !names_node) continue;  // what is short there has the line
    ++nowhere;
    const bool cures = line.find("; fits ") != std::string::npos ||
                       line.find("kube-scheduler can evict") != std::string::npos;
    with_cure += cures ? 1 : 0;
  }
  EXPECT_GT(nowhere, 100);
  EXPECT_EQ(with_cure, nowhere) << "the cure is the last that is left out";
}

// What helps, or what no node of the pod's pool has.
bool HasCure(std::string_view line) {
  constexpr std::array kCures = {
      "; fits ",        "kube-scheduler can evict", "no node ",    "never takes it:",
      "never take it:", " ever takes it:",          ", it needs ", ": start it"};
  return std::ranges::any_of(
      kCures, [line](const char* cure) { return line.find(cure) != std::string_view::npos; });
}

TEST(FirstLineProperty, NearlyAllPodsThatFitNowhereAreToldWhatHelps) {
  int nowhere = 0, told = 0;
  for (std::uint64_t seed = 1; nowhere < 1000; ++seed) {
    World world(seed);
    const std::shared_ptr<const Snapshot> snapshot = world.Snapshot();
    Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
    for (const PodRequest& pod : world.waiting()) {
      if (pod.gang.minimum.value_or(1) > 1) continue;
      const PodExplanation explained = ExplainPod(engine, {.snapshot = snapshot, .pod = pod});
      if (explained.fitting > 0 || explained.placed) continue;
      ++nowhere;
      if (HasCure(explained.sentence)) ++told;
    }
  }
  EXPECT_GE(told, nowhere * 95 / 100) << told << " of " << nowhere;
  RecordProperty("told", told);
}

constexpr std::uint64_t kGangSeeds = 4000;

// With pools, taints, few CPUs, other devices and few places for pods.
class GangInPools {
 public:
  explicit GangInPools(std::uint64_t seed) : random_(seed) {
    const int nodes = random_.Between(2, 6);
    for (int i = 0; i < nodes; ++i) nodes_.push_back(ADrawnNode("n" + std::to_string(i)));
    const int kinds = random_.Between(1, 3), members = random_.Between(2, 6);
    std::vector<APod> of;
    for (int k = 0; k < kinds; ++k) of.push_back(AKind());
    for (int i = 0; i < members; ++i) {
      PodRequest pod = of[static_cast<std::size_t>(i % kinds)].Request();
      pod.id.name = pod.id.uid = "m" + std::to_string(i);
      ask_.members.push_back(std::make_shared<const PodRequest>(std::move(pod)));
    }
    ask_.minimum = random_.Chance(80) ? members : random_.Between(1, members);
  }

  // Without the pods that run, if there are to be none.
  std::shared_ptr<const Snapshot> Cluster(bool with_pods) const {
    ClusterState state;
    std::vector<ClusterEvent> events;
    for (const auto& [node, held] : nodes_) {
      events.emplace_back(NodeUpserted{node.Spec()});
      const std::string& name = node.Spec().name;
      if (!with_pods || held == 0) continue;
      const APod pod = APod("on-" + name).Whole(held).Cpu(random_cpu_);
      std::vector<int> gpus;
      for (int gpu = 0; gpu < held; ++gpu) gpus.push_back(gpu);
      events.emplace_back(PodBound{pod.Request(), pod.On(name, gpus)});
    }
    EXPECT_TRUE(state.Apply(events));
    return state.Current();
  }

  [[nodiscard]] const GangToPlan& ask() const { return ask_; }

 private:
  std::pair<ANode, int> ADrawnNode(const std::string& name) {
    ANode node(name);
    const int gpus = random_.OneOf<int>({0, 2, 4, 8, 8});
    node.Gpus(gpus).Cpu(random_.OneOf<int>({4, 16, 64}));
    node.Labelled({{"pool", random_.OneOf<std::string>({"a", "b"})}});
    node.Counts(random_.OneOf<int>({2, 110, 110}),
                random_.Chance(60) ? OtherResources{{"rdma/hca", 2}} : OtherResources{});
    if (random_.Chance(30)) node.Tainted("gpu", "x");
    if (random_.Chance(15)) node.Tainted("team", "y");
    const int held = random_.OneOf<int>({0, 0, 1, 2, 8});
    return {node, std::min(held, gpus)};
  }

  APod AKind() {
    APod pod("m");
    pod.Gang("berth:default/g").GangSize(2);
    const int gpus = random_.OneOf<int>({0, 1, 2, 3, 8});
    if (gpus > 0) pod.Whole(gpus);
    pod.Cpu(random_.OneOf<int>({1, 3, 10, 100}));
    if (random_.Chance(20)) pod.Others({{"rdma/hca", 1}});
    NodeConstraints constraints;
    if (random_.Chance(50)) {
      const std::string pool = random_.OneOf<std::string>({"a", "b", "a", "b", "gone"});
      constraints.selector = {{"pool", LabelOperator::kIn, {pool}}};
    }
    if (random_.Chance(50))
      constraints.tolerations = {{"gpu", TolerationOperator::kExists, "", std::nullopt}};
    return pod.Constrained(constraints);
  }

  RandomWorld random_;
  std::vector<std::pair<ANode, int>> nodes_;
  GangToPlan ask_;
  std::int64_t random_cpu_ = 1;
};

tl::expected<GangPlan, GangShortage> PlanOf(const std::shared_ptr<const Snapshot>& snapshot,
                                            const GangToPlan& of) {
  NodeDomains domains({});
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  GangRoom room;
  GangAsk ask;
  for (const auto& pod : of.members) ask.members.push_back({.pod = *pod});
  ask.minimum = of.minimum;
  return PlanGang({snapshot, *domains.Of(snapshot), engine, room}, ask);
}

bool Takes(const Node& node, const PodRequest& pod) {
  return Admits(node.spec(), pod) == Reason::kFits && Fits(node, pod.shape) &&
         LackOf(node, pod).empty();
}

bool Selects(const PodRequest& pod, const Node& node) {
  return pod.constraints == nullptr || !pod.constraints->selects() ||
         SelectsNode(*pod.constraints, node.spec().name, node.spec().labels);
}

TEST(FirstLineProperty, WhatIsSaidOfAGangThatHasNoPlaceIsSo) {
  std::map<std::string, int> said;
  for (std::uint64_t seed = 1; seed <= kGangSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const GangInPools world(seed);
    const auto snapshot = world.Cluster(true);
    const auto& members = world.ask().members;
    const auto is_on_gpus = [](const auto& pod) { return pod->shape.wants_gpu(); };
    if (std::ranges::none_of(members, is_on_gpus)) continue;
    const auto plan = PlanOf(snapshot, world.ask());
    if (plan) continue;
    NodeDomains domains({});
    const GangLack lack =
        WhyNoPlan(*snapshot, *domains.Of(snapshot), {}, members, world.ask().minimum);
    SCOPED_TRACE(lack.text);
    if (lack.text.empty()) {
      // The number of places and who holds GPUs say it, or not all have to start.
      const bool is_said =
          plan.error().fits < world.ask().minimum || std::ssize(members) > world.ask().minimum;
      ++said[is_said ? "number" : "nothing"];
      EXPECT_TRUE(is_said);
      continue;
    }
    if (lack.for_good) {
      ++said["never"];
      EXPECT_FALSE(PlanOf(world.Cluster(false), world.ask())) << "it fits once others have ended";
    }
    const bool nowhere = lack.text.find(" fits no node now: ") != std::string::npos ||
                         lack.text.find("never while no node accepts ") != std::string::npos;
    for (const auto& pod : members) {
      if (!nowhere || pod->id.name != lack.member) continue;
      ++said["nowhere"];
      for (NodeIndex i = 0; i < snapshot->size(); ++i) {
        EXPECT_FALSE(Takes(snapshot->node(i), *pod)) << snapshot->names().name(i);
      }
    }
    if (lack.text.find("beside the others") != std::string::npos) ++said["beside"];
    for (const std::string key : {"gpu=x", "team=y"}) {
      if (lack.text.find(key) == std::string::npos) continue;
      ++said["taint"];
      bool some = false;
      for (NodeIndex i = 0; i < snapshot->size(); ++i) {
        const Node& node = snapshot->node(i);
        const auto is_that = [&key](const Taint& taint) {
          return (taint.key + "=" + taint.value) == key;
        };
        some |= std::ranges::any_of(node.spec().taints, is_that) &&
                std::ranges::any_of(members, [&](const auto& pod) { return Selects(*pod, node); });
      }
      EXPECT_TRUE(some) << "no member selects a node with that taint";
    }
  }
  for (const char* kind : {"never", "nowhere", "beside", "taint", "number"}) {
    EXPECT_GT(said[kind], 20) << kind;
  }
  EXPECT_EQ(said["nothing"], 0);
}

}  // namespace
}  // namespace berth::test::first_line_property_test
