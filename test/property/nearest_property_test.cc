// SPDX-License-Identifier: Apache-2.0
//
// The nearest node against brute force, in clusters of 100 nodes in 4 to 8 pools. A pod may use one
// pool. Every node without each one and each two of its pods is judged anew: the nearest node must
// be one that the pod may use, and on no other such node less has to happen.
// And every way in is gone as its words say, and the whole cluster asked again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/drawn.h"
#include "test/support/worlds.h"

namespace berth::test::nearest_property_test {
namespace {

constexpr std::uint64_t kSeeds = Drawn(120);
constexpr int kNodes = 100, kGpus = 8;

// How far a node is: pods that have to end, then the node, then less of the pod, then nothing.
constexpr int kMany = 3, kWell = 4, kLess = 5, kNothing = 6;

class Pools {
 public:
  explicit Pools(std::uint64_t seed) : random_(seed), pools_(Between(4, 8)) {
    for (int i = 0; i < kNodes; ++i) AddNode(i);
    std::vector<std::shared_ptr<const Node>> built;
    for (const ANode& node : nodes_) built.push_back(std::make_shared<const Node>(node.Build()));
    snapshot_ = std::make_shared<const Snapshot>(built);
  }

  [[nodiscard]] const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }

  // For one of the pools: by its label, by the toleration of its taint, or both.
  PodRequest APod() {
    const std::string pool = PoolName(Between(0, pools_ - 1));
    berth::test::APod pod("asked");
    pod.Whole(std::array{1, 2, 4, 8}.at(Below(4))).Cpu(Between(1, 16));
    NodeConstraints constraints;
    constraints.selector = {{"pool", LabelOperator::kIn, {pool}}};
    constraints.tolerations = {{"pool", TolerationOperator::kEqual, pool, std::nullopt}};
    if (Below(3) == 0) constraints.selector.clear();
    pod.Constrained(constraints);
    return pod.Request();
  }

 private:
  std::size_t Below(int count) { return random_.Below(static_cast<std::uint64_t>(count)); }
  int Between(int low, int high) { return low + static_cast<int>(Below(high - low + 1)); }
  static std::string PoolName(int pool) { return std::string(1, static_cast<char>('a' + pool)); }

  void AddNode(int number) {
    const int pool = number % pools_;
    const std::string name = PoolName(pool) + std::to_string(1000 + number);
    ANode node(name);
    node.Gpus(kGpus).Cpu(64).Labelled({{"pool", PoolName(pool)}});
    node.Tainted("pool", PoolName(pool));
    if (Below(12) == 0) node.NotReady().Tainted("node.kubernetes.io/not-ready");
    if (Below(12) == 0) node.Tainted("node.kubernetes.io/unschedulable");
    if (Below(10) == 0) node.Unhealthy(Below(kGpus));
    Fill(node, name);
    nodes_.push_back(node);
    std::ranges::sort(nodes_, {}, [](const ANode& one) { return one.Spec().name; });
  }

  // Nearly all GPUs are held, by pods of 1 to 8.
  void Fill(ANode& node, const std::string& name) {
    const int idle = Below(3) == 0 ? Between(0, 3) : 0;
    for (int gpu = 0; gpu < kGpus - idle;) {
      const int count = std::min(std::array{1, 2, 4, 8}.at(Below(4)), kGpus - idle - gpu);
      std::vector<int> gpus;
      for (int i = 0; i < count; ++i) gpus.push_back(gpu + i);
      gpu += count;
      berth::test::APod pod(name + "-" + std::to_string(gpu));
      node.Holding(pod.Whole(count).Cpu(Between(1, 8)), gpus);
    }
    if (Below(4) != 0) return;
    for (int i = 0; i < 2; ++i) {
      berth::test::APod web(name + "-web" + std::to_string(i));
      node.Holding(web.Cpu(Between(8, 24)));
    }
  }

  Random random_;
  const int pools_;
  std::vector<ANode> nodes_;
  std::shared_ptr<const Snapshot> snapshot_;
};

// The same of a cluster as people have them.
class People {
 public:
  explicit People(std::uint64_t seed)
      : world_(seed, {.nodes = 16, .held_percent = 95, .waiting = 0}),
        snapshot_(world_.Snapshot()) {}

  [[nodiscard]] const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  PodRequest APod() { return world_.APod(); }

 private:
  World world_;
  std::shared_ptr<const Snapshot> snapshot_;
};

bool Takes(const Node& node, const PodRequest& pod) {
  return Fits(node, pod.shape) && Admits(node.spec(), pod) == Reason::kFits;
}

// The node with nothing wrong with it: ready, its GPUs healthy.
Node Well(const Node& node) {
  NodeSpec spec = node.spec();
  spec.ready = true;
  for (GpuSpec& gpu : spec.gpus) gpu.healthy = true;
  std::erase_if(spec.taints, [](const Taint& taint) {  // that go when the node has begun
    return taint.key == "node.kubernetes.io/not-ready" ||
           taint.key == "node.cilium.io/agent-not-ready";
  });
  return Node(std::make_shared<const NodeSpec>(spec),
              PodRecords(node.pods().begin(), node.pods().end()), node.claims());
}

// Whether the pod may use the node, ever: its labels and taints allow it, and it isn't cordoned.
bool MayUse(const Node& node, const PodRequest& pod) {
  return Admits(Well(node).spec(), pod) == Reason::kFits;
}

int PodsToEnd(const Node& node, const PodRequest& pod) {
  const auto without = [&](const std::vector<std::string>& gone) {
    return Takes(node.Without([&gone](const PodRecord& record) {
      return (gone.empty() && !record.life.comes_back) ||
             std::ranges::find(gone, record.pod.id.uid) != gone.end();
    }),
                 pod);
  };
  if (!without({})) return kNothing;
  for (const auto& one : node.pods()) {
    if (!one->life.comes_back && without({one->pod.id.uid})) return 1;
  }
  for (const auto& one : node.pods()) {
    for (const auto& other : node.pods()) {
      if (one->life.comes_back || other->life.comes_back) continue;
      if (without({one->pod.id.uid, other->pod.id.uid})) return 2;
    }
  }
  return kMany;
}

int BruteForce(const Node& node, const PodRequest& pod) {
  if (const int pods = PodsToEnd(node, pod); pods < kNothing) return pods;
  if (Takes(Well(node), pod)) return kWell;
  PodRequest less = pod;
  for (int count = 0; count <= pod.shape.gpu_count(); ++count) {
    less.shape.gpus = WholeGpus{std::max(count, 1)};
    less.shape.cpu_milli = count == 0 ? 1 : pod.shape.cpu_milli;
    if (count == 0) less.shape.gpus = pod.shape.gpus;
    if (Takes(node, less)) return kLess;
  }
  less.shape.cpu_milli = pod.shape.cpu_milli;
  less.shape.memory_bytes = 1;
  return Takes(node, less) ? kLess : kNothing;
}

int ToldDistance(const NearNode& near) {
  if (near.ways.empty()) return kNothing;
  const WayIn& way = near.ways.front();
  if (way.code == "pods_end") return std::min(static_cast<int>(way.pods.size()), kMany);
  if (way.code == "node_ready" || way.code == "gpus_well") return kWell;
  if (way.code == "node_and_pods") return kNothing;  // two things have to happen
  return kLess;
}

struct Count {
  int pods = 0, right = 0;
};

template <class Cluster>
void Ask(Cluster& pools, Count& count) {
  const std::shared_ptr<const Snapshot>& snapshot = pools.snapshot();
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  const PodRequest pod = pools.APod();
  const PodExplanation told = ExplainPod(engine, {.snapshot = snapshot, .pod = pod});
  if (told.fitting > 0) return;
  int least = kNothing;
  std::int64_t closed = 0;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const Node& node = snapshot->node(i);
    closed += MayUse(node, pod) ? 0 : 1;
    if (MayUse(node, pod)) least = std::min(least, BruteForce(node, pod));
  }
  EXPECT_EQ(told.closed.nodes, closed);
  if (least == kNothing) return;
  ASSERT_FALSE(told.nearest.empty());
  const NearNode& nearest = told.nearest.front().near;
  const Node& node = snapshot->node(nearest.node);
  EXPECT_TRUE(MayUse(node, pod)) << node.spec().name << " is not for the pod";
  ++count.pods;
  const bool right = ToldDistance(nearest) == least && BruteForce(node, pod) == least;
  count.right += right ? 1 : 0;
}

TEST(NearestProperty, TheNearestNodeIsOneThatThePodMayUseAndNoneIsNearer) {
  Count count;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pools pools(seed);
    for (int i = 0; i < 8; ++i) Ask(pools, count);
  }
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("as people have them, seed " + std::to_string(seed));
    People people(seed);
    for (int i = 0; i < 4; ++i) Ask(people, count);
  }
  EXPECT_GE(count.pods, Drawn(400)) << "hardly any pod was kept out";
  EXPECT_GE(count.right * 100, count.pods * 99) << count.right << " of " << count.pods;
  RecordProperty("right", count.right);
  RecordProperty("pods", count.pods);
}

// The cluster, or the pod, as a way in would have it.
struct Changed {
  std::shared_ptr<const Snapshot> snapshot;
  PodRequest pod;
};

NodeConstraints ConstraintsOf(const PodRequest& pod) {
  return pod.constraints == nullptr ? NodeConstraints() : *pod.constraints;
}

Changed WithNode(const Snapshot& snapshot, NodeIndex index, const Node& node,
                 const PodRequest& pod) {
  return {
      std::make_shared<const Snapshot>(snapshot.With(index, std::make_shared<const Node>(node))),
      pod};
}

Changed WithSpec(const Snapshot& snapshot, NodeIndex index, const NodeSpec& spec,
                 const PodRequest& pod) {
  const Node& node = snapshot.node(index);
  return WithNode(snapshot, index,
                  Node(std::make_shared<const NodeSpec>(spec),
                       PodRecords(node.pods().begin(), node.pods().end()), node.claims()),
                  pod);
}

std::int64_t FirstNumber(std::string_view text) {
  std::int64_t number = 0;
  const std::size_t at = text.find_first_of("0123456789");
  if (at != text.npos) std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

// Tolerates and uncordons what the words name, and nothing else.
Changed Admitted(const Snapshot& snapshot, NodeIndex index, const PodRequest& pod,
                 std::string_view text) {
  Changed changed{nullptr, pod};
  NodeConstraints constraints = ConstraintsOf(pod);
  NodeSpec spec = snapshot.node(index).spec();
  for (const Taint& taint : spec.taints) {
    if (text.find(TextOf(taint)) == text.npos) continue;
    constraints.tolerations.push_back(
        {taint.key, TolerationOperator::kEqual, taint.value, taint.effect});
  }
  if (text.find("uncordoned") != text.npos) {
    std::erase_if(spec.taints, [](const Taint& taint) {
      return taint.key == "node.kubernetes.io/unschedulable";
    });
  }
  if (text.find("node selector") != text.npos) {
    std::erase_if(constraints.selector, [&text](const LabelRequirement& wanted) {
      return text.find(wanted.key) != text.npos;
    });
  }
  if (text.find("node affinity") != text.npos) constraints.either.reset();
  changed.pod.constraints = std::make_shared<const NodeConstraints>(constraints);
  changed.snapshot = WithSpec(snapshot, index, spec, pod).snapshot;
  return changed;
}

// nullopt: this test does not know the way.
std::optional<Changed> Apply(const std::shared_ptr<const Snapshot>& snapshot, const PodRequest& pod,
                             NodeIndex index, const WayIn& way) {
  const Node& node = snapshot->node(index);
  Changed changed{snapshot, pod};
  if (way.code == "pods_end") {
    const Node left = node.Without([&way](const PodRecord& record) {
      return std::ranges::find(way.pods, record.pod.id.full_name()) != way.pods.end();
    });
    return WithNode(*snapshot, index, left, pod);
  }
  if (way.code == "node_ready" || way.code == "gpus_well" || way.code == "node_and_pods") {
    NodeSpec spec = node.spec();
    if (way.text.find("healthy again") != way.text.npos ||
        way.text.find("its device plugin offers") != way.text.npos) {
      spec.missing = 0;
      for (GpuSpec& gpu : spec.gpus) gpu.healthy = true;
    }
    if (way.text.find("the node is ready") != way.text.npos) {
      spec.ready = true;
      std::erase_if(spec.taints,
                    [](const Taint& taint) { return taint.key == "node.kubernetes.io/not-ready"; });
    }
    std::erase_if(spec.taints, [&way](const Taint& taint) {
      return way.text.find("once its taint " + taint.key + " is gone") != way.text.npos;
    });
    changed = WithSpec(*snapshot, index, spec, pod);
    const Node left = changed.snapshot->node(index).Without([&way](const PodRecord& record) {
      return std::ranges::find(way.pods, record.pod.id.full_name()) != way.pods.end();
    });
    return WithNode(*changed.snapshot, index, left, pod);
  }
  if (way.code == "size") {
    changed.pod.shape.gpus = WholeGpus{static_cast<int>(FirstNumber(way.text))};
    return changed;
  }
  if (way.code == "cpu") {
    changed.pod.shape.cpu_milli = FirstNumber(way.text) * 1000;
    return changed;
  }
  if (way.code == "memory") {
    changed.pod.shape.memory_bytes = FirstNumber(way.text) * kGib;
    return changed;
  }
  if (way.code == "taints" || way.code == "selection" || way.code == "access") {
    return Admitted(*snapshot, index, pod, way.text);
  }
  return std::nullopt;
}

bool TakesIt(const Changed& changed, NodeIndex index) {
  std::vector<NodeIndex> nodes;
  for (NodeIndex i = 0; i < changed.snapshot->size(); ++i) nodes.push_back(i);
  const auto reasons = ReasonsAnew(*changed.snapshot, {.pod = changed.pod, .candidates = nodes});
  return reasons[index] == Reason::kFits;
}

struct Told {
  int told = 0, is_true = 0, unknown = 0;
};

template <class Cluster>
void TryWays(Cluster& cluster, std::uint64_t seed, Told& count) {
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  const PodRequest pod = cluster.APod();
  const auto answer = ExplainPod(engine, {.snapshot = cluster.snapshot(), .pod = pod});
  for (const NearNodeFacts& near : answer.nearest) {
    for (const WayIn& way : near.near.ways) {
      const auto changed = Apply(cluster.snapshot(), pod, near.near.node, way);
      if (!changed) {
        ++count.unknown;
        ADD_FAILURE() << way.code << ": " << way.text;
        continue;
      }
      ++count.told;
      const bool takes = TakesIt(*changed, near.near.node);
      count.is_true += takes ? 1 : 0;
      EXPECT_TRUE(takes) << "seed " << seed << ", " << near.facts.name << ": " << way.text;
    }
  }
}

TEST(NearestProperty, EveryWayInThatIsToldLetsThePodIn) {
  Told count;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Pools pools(seed);
    for (int i = 0; i < 8; ++i) TryWays(pools, seed, count);
    People people(seed);
    for (int i = 0; i < 4; ++i) TryWays(people, seed, count);
    if (HasFailure()) break;
  }
  EXPECT_GT(count.told, Drawn(2500));
  EXPECT_EQ(count.unknown, 0);
  EXPECT_GE(count.is_true * 1000, count.told * 999) << count.is_true << " of " << count.told;
  RecordProperty("ways", count.told);
  RecordProperty("true", count.is_true);
}

}  // namespace
}  // namespace berth::test::nearest_property_test
