// SPDX-License-Identifier: Apache-2.0
//
// The first line of an explanation fits into a terminal, whatever the names are and whatever is
// wrong, and says first what is so and then what helps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "scoring/explain/explain_pod.h"
#include "scoring/registry.h"
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

}  // namespace
}  // namespace berth::test::first_line_property_test
