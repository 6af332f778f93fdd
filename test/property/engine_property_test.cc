// SPDX-License-Identifier: Apache-2.0
//
// The engine's promises over random clusters, profiles and requests.
#include "scoring/devices/device_picker.h"
#include "scoring/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "scoring/priority.h"
#include "scoring/registry.h"
#include "test/support/drawn.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::engine_property_test {
namespace {

constexpr std::uint64_t kSeeds = Drawn(1000);
constexpr int kNodes = 8, kPods = 16, kShapes = 8;

std::string SeedIs(std::uint64_t seed) { return "seed " + std::to_string(seed); }

std::vector<NodeIndex> AllOf(const Snapshot& snapshot) {
  std::vector<NodeIndex> indices(snapshot.size());
  std::iota(indices.begin(), indices.end(), NodeIndex{0});
  return indices;
}

// A populated cluster and an engine with a random profile.
struct Setting {
  explicit Setting(std::uint64_t seed, const std::vector<DeviceRule>& rules = kEveryDeviceRule)
      : world(seed), spec(world.AProfile(rules)), mix(world.AMix()) {
    if (seed % 3 == 0) {
      people.emplace(seed, WorldSize{.shares = true});
      people->Populate(state);
    } else {
      world.Populate(state, kNodes, kPods);
    }
  }
  // One that somebody has, on clusters as people have them.
  RequestShape AShape() {
    return people && world.Chance(70) ? people->APod().shape : world.AShape();
  }
  [[nodiscard]] Profile MakeProfile() const { return BuildProfile(spec, mix).value(); }

  RandomWorld world;
  std::optional<World> people;
  ProfileSpec spec;
  RequestMix mix;
  ClusterState state;
};

TEST(EngineProperty, PlacesExactlyWhereItFilteredAndTheNodeCanTakeIt) {
  int placed = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    Engine engine(setting.MakeProfile());
    const auto snapshot = setting.state.Current();
    for (int i = 0; i < kShapes; ++i) {
      const RequestShape shape = setting.AShape();
      const std::vector<Reason> reasons = engine.Filter(snapshot, shape, AllOf(*snapshot));
      for (NodeIndex node = 0; node < snapshot->size(); ++node) {
        const auto placement = engine.PlaceOn(snapshot, shape, node);
        ASSERT_EQ(placement.has_value(), reasons[node] == Reason::kFits) << "node " << node;
        if (!placement) {
          ASSERT_EQ(placement.error(), reasons[node]) << "node " << node;
          ++refused;
          continue;
        }
        const Status taken = snapshot->node(node).CanTake(*placement);
        ASSERT_TRUE(taken.has_value()) << "node " << node << ": " << taken.error().message;
        ASSERT_EQ(placement->node, snapshot->node(node).spec().name);
        ASSERT_EQ(std::ssize(placement->grants) + placement->places, shape.gpu_count());
        ASSERT_TRUE(
            std::ranges::is_sorted(placement->grants, std::less_equal<>(), &DeviceGrant::gpu));
        ++placed;
      }
    }
  }
  EXPECT_GT(placed, Drawn(1000));
  EXPECT_GT(refused, Drawn(1000));
}

// A node that says "never" stays full of no's when it is emptied; one that says "not now" fits.
TEST(EngineProperty, IsUnresolvableExactlyWhereTheEmptyNodeRefusesToo) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    Engine engine(setting.MakeProfile());
    const auto snapshot = setting.state.Current();
    std::vector<std::shared_ptr<const Node>> nodes;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      nodes.push_back(
          std::make_shared<const Node>(std::make_shared<const NodeSpec>(snapshot->node(i).spec())));
    }
    const auto emptied = std::make_shared<const Snapshot>(nodes);
    for (int i = 0; i < kShapes; ++i) {
      const RequestShape shape = setting.AShape();
      const auto now = engine.Filter(snapshot, shape, AllOf(*snapshot));
      const auto ever = engine.Filter(emptied, shape, AllOf(*snapshot));
      for (NodeIndex node = 0; node < snapshot->size(); ++node) {
        ASSERT_EQ(VerdictOf(now[node]) == Verdict::kUnresolvable, ever[node] != Reason::kFits)
            << "node " << node << ": " << CodeOf(now[node]) << ", empty: " << CodeOf(ever[node]);
      }
    }
  }
}

// Whether a pod of whole GPUs or of a share would have on that node what it says that it needs.
bool HasWhatIsNeeded(const NodeSpec& node, const RequestShape& shape) {
  const bool in_places = !shape.is_share() && node.places.count > node.places.gpus;
  if (shape.isolation == Isolation::kHardware && (shape.is_share() || in_places)) return false;
  if (shape.isolation == Isolation::kMemory) {
    if (shape.is_share()) return false;
    if (in_places && node.places.sharing != GpuSharing::kMps) return false;
  }
  const std::int64_t least = shape.min_gpu_memory_mib;
  if (least > 0 && node.places.count > 0) return node.places.memory_mib >= least;
  return std::ranges::all_of(node.gpus,
                             [least](const GpuSpec& gpu) { return gpu.memory_mib >= least; });
}

// Whether some GPUs have the memory and others do not: they are judged one by one.
bool HasItOnSome(const NodeSpec& node, const RequestShape& shape) {
  const auto has = [&shape](const GpuSpec& gpu) {
    return gpu.memory_mib >= shape.min_gpu_memory_mib;
  };
  return node.places.count == 0 && std::ranges::any_of(node.gpus, has) &&
         !std::ranges::all_of(node.gpus, has);
}

TEST(EngineProperty, GivesPodsWhatTheySayThatTheyNeedAndNothingElseChanges) {
  int lacked = 0, had = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    RandomWorld world(seed);
    for (int i = 0; i < kNodes; ++i) {
      NodeSpec spec = world.ANodeNamed("n");
      if (spec.places.count > 0) {
        spec.places.gpus = world.OneOf<int>({0, 1, spec.places.count});
        spec.places.memory_mib = world.OneOf<std::int64_t>({0, 4000, 9000});
        spec.places.sharing = static_cast<GpuSharing>(world.Between(0, 2));
      }
      const Node node(std::make_shared<const NodeSpec>(spec));
      const RequestShape plain = world.AShape();
      if (!plain.wants_gpu()) continue;
      RequestShape shape = plain;
      shape.isolation = static_cast<Isolation>(world.Between(0, 3));
      if (!shape.is_share())
        shape.min_gpu_memory_mib = world.OneOf<std::int64_t>({0, 0, 4000, 9000});
      const Reason before = FirstObjection(node, plain), after = FirstObjection(node, shape);
      if (HasItOnSome(spec, shape)) continue;  // it depends on how many GPUs have it
      if (HasWhatIsNeeded(spec, shape)) {
        ASSERT_EQ(after, before) << CodeOf(after);
        had += before == Reason::kFits ? 1 : 0;
      } else {
        ASSERT_EQ(VerdictOf(after), Verdict::kUnresolvable) << CodeOf(after);
        ++lacked;
      }
    }
  }
  EXPECT_GT(lacked, Drawn(300));
  EXPECT_GT(had, Drawn(300));
}

TEST(EngineProperty, AgreesWithItselfOnTheBest) {
  int ties = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    Engine engine(setting.MakeProfile());
    const auto snapshot = setting.state.Current();
    for (int i = 0; i < kShapes; ++i) {
      const RequestShape shape = setting.AShape();
      std::vector<NodeIndex> candidates = AllOf(*snapshot);
      setting.world.Shuffle(candidates);
      const auto reasons = engine.Filter(snapshot, shape, candidates);
      const auto priorities = engine.Prioritize(snapshot, shape, candidates);
      std::vector<NodeIndex> top;
      for (std::size_t c = 0; c < candidates.size(); ++c) {
        ASSERT_LE(priorities[c], kMaxPriority);
        if (reasons[c] != Reason::kFits) {
          ASSERT_EQ(priorities[c], 0);
        }
        if (priorities[c] == kMaxPriority) top.push_back(candidates[c]);
      }
      std::ranges::sort(top);
      ASSERT_EQ(top, engine.Best(snapshot, shape));
      ties += top.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(ties, Drawn(10));
}

TEST(EngineProperty, ScoresEveryChoiceFrom0To100) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    const auto snapshot = setting.state.Current();
    for (const std::string_view name : ScorerNames()) {
      SCOPED_TRACE(name);
      const auto scorer = MakeScorer(name, setting.mix).value();
      for (int i = 0; i < kShapes; ++i) {
        const RequestShape shape = setting.AShape();
        for (NodeIndex node = 0; node < snapshot->size(); ++node) {
          const auto choices = DeviceChoices(snapshot->node(node), shape, DeviceRule::kBestScore);
          if (choices.empty() || scorer->normalization() != Normalization::kNone) continue;
          std::vector<int> scores(choices.size(), -1);
          scorer->Score(snapshot->node(node), shape, choices, scores);
          for (const int score : scores) {
            ASSERT_GE(score, 0) << "node " << node;
            ASSERT_LE(score, kMaxScore) << "node " << node;
          }
        }
      }
    }
  }
}

void ExpectSameTables(EvaluationTable& incremental, EvaluationTable& fresh, std::size_t nodes) {
  for (NodeIndex node = 0; node < nodes; ++node) {
    ASSERT_EQ(incremental.reason(node), fresh.reason(node)) << "node " << node;
  }
  const std::vector<NodeIndex> fitting = fresh.Fitting();
  ASSERT_EQ(incremental.Fitting(), fitting);
  for (const NodeIndex node : fitting) {
    ASSERT_EQ(incremental.choice(node), fresh.choice(node)) << "node " << node;
  }
  ASSERT_EQ(incremental.Totals(fitting), fresh.Totals(fitting));
  for (const int total : fresh.Totals(fitting)) {
    ASSERT_GE(total, 0);
    ASSERT_LE(total, kMaxTotal);
  }
}

// The same machine under other names, with other pods that hold the same.
std::shared_ptr<const Snapshot> Tripled(const Snapshot& snapshot) {
  std::vector<std::shared_ptr<const Node>> nodes;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const char* const copy : {"-0", "-1", "-2"}) {
      NodeSpec spec = snapshot.node(i).spec();
      spec.name += copy;
      for (GpuSpec& gpu : spec.gpus) gpu.uuid += gpu.uuid.empty() ? "" : copy;
      const auto pods = snapshot.node(i).pods();
      nodes.push_back(std::make_shared<const Node>(
          std::make_shared<const NodeSpec>(std::move(spec)), PodRecords(pods.begin(), pods.end())));
    }
  }
  std::ranges::sort(nodes, {}, [](const auto& node) { return node->spec().name; });
  return std::make_shared<const Snapshot>(nodes);
}

TEST(EngineProperty, FindsOnANodeWhatItWouldFindIfThereWereNoOther) {
  std::size_t alike = 0, fit = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds / 4 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    const Profile profile = setting.MakeProfile();
    const auto snapshot = Tripled(*setting.state.Current());
    for (int i = 0; i < kShapes; ++i) {
      const RequestShape shape = setting.AShape();
      EvaluationTable all(profile, shape);
      all.Refresh(snapshot, {.states = std::numeric_limits<std::uint64_t>::max()});
      alike += all.outcomes() < snapshot->size() ? 1U : 0U;
      for (NodeIndex node = 0; node < snapshot->size(); ++node) {
        EvaluationTable one(profile, shape);
        one.Refresh(std::make_shared<const Snapshot>(std::vector{snapshot->shared(node)}));
        ASSERT_EQ(all.reason(node), one.reason(0)) << "node " << node;
        if (one.reason(0) != Reason::kFits) continue;
        ++fit;
        ASSERT_EQ(all.choice(node), one.choice(0)) << "node " << node;
        ASSERT_EQ(all.Emptiness(std::vector{node}), one.Emptiness(std::vector{NodeIndex{0}}));
        ASSERT_EQ(all.Totals(std::vector{node}), one.Totals(std::vector{NodeIndex{0}}));
      }
    }
  }
  EXPECT_GT(alike, Drawn(1000u));
  EXPECT_GT(fit, Drawn(10'000u));
}

TEST(EngineProperty, RefreshesATableToWhatAFreshOneSays) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    Setting setting(seed);
    // Which nodes wait to be scored depends on the refreshes before.
    if (MixUseOf(setting.spec) == MixUse::kDraws) continue;
    const Profile profile = setting.MakeProfile();
    const RequestShape shape = setting.AShape();
    EvaluationTable incremental(profile, shape);
    std::vector<std::shared_ptr<const Snapshot>> history = {setting.state.Current()};
    for (int i = 0; i < 20; ++i) {
      const std::string name = "n" + std::to_string(setting.world.Between(0, kNodes + 1));
      const PodRequest pod = setting.world.APodNumbered(setting.world.Between(0, kPods));
      std::vector<ClusterEvent> change;
      const int what = setting.world.Between(0, 9);
      if (what == 0) change = {NodeUpserted{setting.world.ANodeNamed(name)}};
      if (what == 1) change = {NodeRemoved{name}};
      if (what >= 2 && what <= 5) {
        change = {PodBound{pod, setting.world.AForeignPlacement(pod.shape, name)}};
      }
      if (what == 6) change = {PodGone{pod.id.uid}};
      ASSERT_TRUE(setting.state.Apply(change).has_value());
      history.push_back(setting.state.Current());
      // Now and then back to an older one.
      const auto& snapshot = what >= 8 ? setting.world.OneOf(history) : history.back();
      EvaluationTable fresh(profile, shape);
      fresh.Refresh(snapshot);
      incremental.Refresh(snapshot);
      ExpectSameTables(incremental, fresh, snapshot->size());
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(EngineProperty, GivesTheSameTotalsWhateverTheNodesAreCalled) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    // The random rule draws by the node's name.
    Setting setting(seed, {DeviceRule::kFirst, DeviceRule::kTightest, DeviceRule::kBestScore});
    // Those that wait to be scored are the last ones by name.
    if (MixUseOf(setting.spec) == MixUse::kDraws) continue;
    const ClusterState::Contents contents = setting.state.Everything();
    const Snapshot& before = *contents.snapshot;
    std::vector<int> numbers(before.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    setting.world.Shuffle(numbers);
    std::map<std::string, std::string> new_name;
    std::vector<ClusterEvent> events;
    for (NodeIndex i = 0; i < before.size(); ++i) {
      NodeSpec spec = before.node(i).spec();
      new_name[spec.name] = "m" + std::to_string(numbers[i]);
      spec.name = new_name[spec.name];
      events.emplace_back(NodeUpserted{spec});
    }
    for (PodRecord record : contents.pods) {
      record.placement.node = new_name.at(record.placement.node);
      events.emplace_back(PodBound{record.pod, record.placement});
    }
    ClusterState renamed;
    ASSERT_TRUE(renamed.Apply(events).has_value());

    const Profile profile = setting.MakeProfile();
    for (int i = 0; i < kShapes; ++i) {
      const RequestShape shape = setting.AShape();
      std::vector<std::vector<int>> totals;
      for (const auto& snapshot : {contents.snapshot, renamed.Current()}) {
        EvaluationTable table(profile, shape);
        table.Refresh(snapshot);
        totals.push_back(table.Totals(table.Fitting()));
        std::ranges::sort(totals.back());
      }
      ASSERT_EQ(totals[0], totals[1]);
    }
  }
}

TEST(PriorityProperty, KeepsOrderAndTheSetOfTheBest) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    RandomWorld world(seed);
    const int spread = world.OneOf<int>({1, 12, 300, kMaxTotal});
    std::vector<int> totals;
    for (int i = world.Between(1, 40); i > 0; --i) totals.push_back(world.Between(0, spread));
    const int best = *std::ranges::max_element(totals);
    const auto equal = ToPriorities(totals, TieRule::kEqual);
    const auto first = ToPriorities(totals, TieRule::kFirst);
    for (std::size_t a = 0; a < totals.size(); ++a) {
      ASSERT_EQ(equal[a] == kMaxPriority, totals[a] == best);
      for (std::size_t b = 0; b < totals.size(); ++b) {
        if (totals[a] == totals[b]) {
          ASSERT_EQ(equal[a], equal[b]);
        }
        if (totals[a] < totals[b]) {
          ASSERT_LE(equal[a], equal[b]);
        }
        if (totals[a] < totals[b]) {
          ASSERT_LE(first[a], first[b]);
        }
        if (totals[a] == totals[b] && a < b) {
          ASSERT_GE(first[a], first[b]);
        }
      }
    }
    const auto winner = std::ranges::find(totals, best) - totals.begin();
    ASSERT_EQ(std::ranges::count(first, kMaxPriority), 1);
    ASSERT_EQ(first[static_cast<std::size_t>(winner)], kMaxPriority);
  }
}

}  // namespace
}  // namespace berth::test::engine_property_test
