// SPDX-License-Identifier: Apache-2.0
//
// ClusterState against a model that keeps the same books the slow way, under random operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "test/support/drawn.h"
#include "test/support/mig_nodes.h"
#include "test/support/random_world.h"

namespace berth::test::cluster_state_property_test {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kSeeds = Drawn(1000);
constexpr int kNodes = 6, kPods = 25, kGangs = 4, kOperations = 80;

std::string SeedIs(std::uint64_t seed) { return "seed " + std::to_string(seed); }

// What the state should be: every node is its spec less the pods and claims on it, added up anew.
struct Model {
  std::map<std::string, NodeSpec> specs;
  std::map<std::string, PodRecord> pods;
  std::map<std::string, std::vector<ClaimedGpu>> claims;  // by node

  [[nodiscard]] Node NodeWithout(const std::string& name, const std::string& uid) const {
    return NodeOf(name, [&uid](const PodRecord& record) { return record.pod.id.uid != uid; });
  }

  // Without pods whose GPUs are assumed. An assumption may move when another pod comes, and then
  // find no set that fits, as any packing by a rule of thumb does; what records name is certain.
  [[nodiscard]] Node NodeAsNamed(const std::string& name) const {
    return NodeOf(name, [this](const PodRecord& record) {
      Node alone(std::make_shared<const NodeSpec>(specs.at(record.placement.node)), {});
      alone.Put(std::make_shared<const PodRecord>(record));
      return alone.unattributed() == 0;
    });
  }

  template <typename Counts>
  [[nodiscard]] Node NodeOf(const std::string& name, Counts counts) const {
    const auto claimed = claims.find(name);
    Node node(std::make_shared<const NodeSpec>(specs.at(name)), {},
              claimed == claims.end()
                  ? nullptr
                  : std::make_shared<const std::vector<ClaimedGpu>>(claimed->second));
    for (const auto& [key, record] : pods) {
      if (record.placement.node == name && counts(record)) {
        node.Put(std::make_shared<const PodRecord>(record));
      }
    }
    return node;
  }
};

// Of GPUs that a node may or may not have, some twice, mostly none.
std::vector<ClaimedGpu> SomeClaims(RandomWorld& world) {
  std::vector<ClaimedGpu> claimed(static_cast<std::size_t>(std::max(0, world.Between(-2, 3))));
  for (ClaimedGpu& gpu : claimed) gpu.index = world.Between(-1, 9);
  return claimed;
}

void ExpectSameBooks(const ClusterState& state, const Model& model) {
  const ClusterState::Contents contents = state.Everything();
  ASSERT_EQ(contents.snapshot->size(), model.specs.size());
  NodeIndex index = 0;
  for (const auto& [name, spec] : model.specs) {
    ASSERT_EQ(contents.snapshot->names().name(index), name);
    ASSERT_TRUE(contents.snapshot->node(index) == model.NodeWithout(name, "")) << name;
    ++index;
  }
  ASSERT_EQ(contents.pods.size(), model.pods.size());
  auto held = contents.pods.begin();
  for (const auto& [uid, record] : model.pods) {
    ASSERT_EQ(held->pod.id.uid, uid);
    ASSERT_EQ(held->state, record.state) << uid;
    ASSERT_EQ(held->placement, record.placement) << uid;
    ++held;
  }
}

// Some differ in their convention alone.
GangId GangNumbered(int number) {
  return {number % 2 == 0 ? "" : "labels", "ns", "g" + std::to_string(number / 2)};
}

// Where the pods of each gang are, counted anew.
void ExpectSameGangs(const ClusterState& state, const Model& model) {
  std::map<GangId, std::set<std::string>> nodes;
  std::map<GangId, std::size_t> sizes;
  for (int i = 0; i < kGangs; ++i) nodes[GangNumbered(i)];
  for (const auto& [uid, record] : model.pods) {
    if (record.pod.gang.empty()) continue;
    nodes[record.pod.gang.id].insert(record.placement.node);
    ++sizes[record.pod.gang.id];
  }
  for (const auto& [gang, names] : nodes) {
    ASSERT_EQ(state.GangSize(gang), sizes[gang]) << gang.text();
    ASSERT_EQ(state.GangNodes(gang), std::vector<std::string>(names.begin(), names.end()))
        << gang.text();
  }
  ASSERT_EQ(state.GangSize({}), 0U);
}

// Two draws, one after the other: in one expression their order would be the compiler's.
Profile AProfile(RandomWorld& world) {
  const ProfileSpec spec = world.AProfile(kEveryDeviceRule);
  return BuildProfile(spec, world.AMix()).value();
}

// One run: an engine that chooses, a clock, the state and its model.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : world_(seed), engine_(AProfile(world_)) {}

  void Start() {
    for (int i = 0; i < kNodes; ++i) UpsertNode("n" + std::to_string(i));
    old_ = state_.Current();
  }

  void Step() {
    old_ = world_.Chance(30) ? old_ : state_.Current();  // decisions may rest on an older snapshot
    const int what = world_.Between(0, 99);
    const std::string uid = "uid-" + std::to_string(world_.Between(0, kPods - 1));
    if (what < 42) return Reserve();
    if (what < 50) return Plan();
    if (what < 53) return Unplan();
    if (what < 60) return Confirm(uid);
    if (what < 68) return Forget(uid);
    if (what < 75) return Overdue();
    if (what < 83) return Bind();
    if (what < 92) return Delete(uid);
    const std::string name = "n" + std::to_string(world_.Between(0, kNodes - 1));
    if (what < 95) return Claim(name);
    return what < 98 ? UpsertNode(name) : RemoveNode(name);
  }

  [[nodiscard]] const ClusterState& state() const { return state_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] int reserved() const { return reserved_; }
  [[nodiscard]] int conflicts() const { return conflicts_; }

 private:
  // Of a gang or of none; the same pod may be of another one the next time.
  PodRequest APod() {
    PodRequest pod = world_.APodNumbered(world_.Between(0, kPods - 1));
    if (world_.Chance(60)) pod.gang.id = GangNumbered(world_.Between(0, kGangs - 1));
    return pod;
  }

  void Reserve() {
    const PodRequest pod = APod();
    if (old_->size() == 0) return;
    const auto node = static_cast<NodeIndex>(world_.Between(0, static_cast<int>(old_->size()) - 1));
    const auto placement = engine_.PlaceOn(old_, pod.shape, node);
    if (!placement) return;
    const auto settle_after = clock_.Now() + seconds(world_.Between(1, 20));
    const Status want = WhatReserveSays(pod, *placement);
    const auto got = state_.Reserve(pod, *placement, settle_after);
    ASSERT_EQ(got.has_value(), want.has_value()) << pod.id.uid;
    if (!got) {
      ASSERT_EQ(got.error().code, want.error().code);
      ++conflicts_;
      return;
    }
    model_.pods[pod.id.uid] = {pod, *placement, PodState::kReserved, settle_after};
    ++reserved_;
    ExpectWithinCapacity(*placement);
  }

  // Of up to three pods, each where the engine would put it alone: what fits together is the
  // state's to say.
  void Plan() {
    std::map<std::string, PodPlacement> plan;  // by UID
    for (int i = world_.Between(1, 3); i > 0 && old_->size() > 0; --i) {
      const PodRequest pod = APod();
      const auto node =
          static_cast<NodeIndex>(world_.Between(0, static_cast<int>(old_->size()) - 1));
      if (auto placement = engine_.PlaceOn(old_, pod.shape, node)) {
        plan.insert_or_assign(pod.id.uid, PodPlacement{pod, *placement});
      }
    }
    std::vector<PodPlacement> pods;
    for (const auto& [uid, planned] : plan) pods.push_back(planned);
    const bool want = WhatPlanSays(pods);
    ASSERT_EQ(state_.Plan(pods).has_value(), want);
    if (!want) return;
    for (const PodPlacement& planned : pods) {
      model_.pods[planned.pod.id.uid] = {planned.pod, planned.placement, PodState::kPlanned, {}};
    }
    for (const PodPlacement& planned : pods) ExpectWithinCapacity(planned.placement);
  }

  [[nodiscard]] bool WhatPlanSays(const std::vector<PodPlacement>& pods) const {
    Model after = model_;
    for (const PodPlacement& planned : pods) {
      const auto held = after.pods.find(planned.pod.id.uid);
      if (held == after.pods.end()) continue;
      if (held->second.state != PodState::kPlanned) return false;
      after.pods.erase(held);
    }
    for (const PodPlacement& planned : pods) {
      const std::string& uid = planned.pod.id.uid;
      if (!after.specs.contains(planned.placement.node)) return false;
      if (!after.NodeWithout(planned.placement.node, uid).CanTake(planned.placement)) return false;
      after.pods[uid] = {planned.pod, planned.placement, PodState::kPlanned, {}};
    }
    return true;
  }

  void Unplan() {
    std::vector<std::string> uids;
    for (int i = world_.Between(0, 5); i > 0; --i) {
      uids.push_back("uid-" + std::to_string(world_.Between(0, kPods - 1)));
    }
    std::size_t want = 0;
    for (const std::string& uid : uids) {
      const auto held = model_.pods.find(uid);
      if (held == model_.pods.end() || held->second.state != PodState::kPlanned) continue;
      model_.pods.erase(held);
      ++want;
    }
    ASSERT_EQ(state_.Unplan(uids), want);
  }

  [[nodiscard]] Status WhatReserveSays(const PodRequest& pod, const Placement& placement) const {
    if (!model_.specs.contains(placement.node)) return Fail(Errc::kNotFound, "");
    const auto held = model_.pods.find(pod.id.uid);
    if (held != model_.pods.end() && held->second.state == PodState::kBound) {
      return Fail(Errc::kConflict, "");
    }
    return model_.NodeWithout(placement.node, pod.id.uid).CanTake(placement);
  }

  // What was just granted is not granted twice.
  void ExpectWithinCapacity(const Placement& placement) {
    const auto snapshot = state_.Current();
    const Node& whole = snapshot->node(snapshot->names().Find(placement.node));
    if (placement.cpu_milli > 0) {
      ASSERT_GE(whole.free_cpu_milli(), 0);
    }
    if (placement.memory_bytes > 0) {
      ASSERT_GE(whole.free_memory_bytes(), 0);
    }
    if (placement.ephemeral_bytes > 0) {
      ASSERT_GE(whole.free_ephemeral_bytes(), 0);
    }
    const Node node = model_.NodeAsNamed(placement.node);
    for (const DeviceGrant& grant : placement.grants) {
      const GpuFree& free = node.gpus()[static_cast<std::size_t>(grant.gpu)];
      ASSERT_GE(free.milli, 0) << "gpu " << grant.gpu;
      if (grant.memory_mib > 0) {
        ASSERT_GE(free.memory_mib, 0) << "gpu " << grant.gpu;
      }
      ASSERT_TRUE(node.spec().gpus[static_cast<std::size_t>(grant.gpu)].healthy);
      ASSERT_EQ(node.claimed() >> grant.gpu & 1, 0U) << "gpu " << grant.gpu;
    }
  }

  void Confirm(const std::string& uid) {
    const auto held = model_.pods.find(uid);
    const bool held_here = held != model_.pods.end() && held->second.state != PodState::kPlanned;
    ASSERT_EQ(state_.Confirm(uid).has_value(), held_here) << uid;
    if (held_here) held->second.state = PodState::kBound;
  }

  void Forget(const std::string& uid) {
    const auto held = model_.pods.find(uid);
    const bool reserved = held != model_.pods.end() && held->second.state == PodState::kReserved;
    ASSERT_EQ(state_.Forget(uid), reserved) << uid;
    if (reserved) model_.pods.erase(held);
  }

  void Overdue() {
    clock_.Advance(seconds(world_.Between(0, 8)));
    std::set<std::string> want, got;
    for (const auto& [uid, record] : model_.pods) {
      if (record.state == PodState::kReserved && record.settle_after <= clock_.Now()) {
        want.insert(uid);
      }
    }
    for (const auto& doubt : state_.Overdue(clock_.Now())) got.insert(doubt.pod.uid);
    ASSERT_EQ(got, want);
    for (const std::string& uid : want) Forget(uid);
  }

  void Bind() {
    PodRequest pod = APod();
    const auto held = model_.pods.find(pod.id.uid);
    const bool as_reserved = held != model_.pods.end() && world_.Chance(70);
    const std::string node = "n" + std::to_string(world_.Between(0, kNodes));  // one never known
    const Placement placement =
        as_reserved ? held->second.placement : world_.AForeignPlacement(pod.shape, node);
    if (as_reserved) pod = held->second.pod;
    Apply(PodBound{pod, placement});
    model_.pods[pod.id.uid] = {pod, placement, PodState::kBound, {}};
  }

  void Delete(const std::string& uid) {
    Apply(PodGone{uid});
    model_.pods.erase(uid);
  }

  void Claim(const std::string& node) {
    const std::vector<ClaimedGpu> claimed = SomeClaims(world_);
    Apply(GpusClaimed{node, claimed});
    model_.claims[node] = claimed;
  }

  void UpsertNode(const std::string& name) {
    const NodeSpec spec = world_.ANodeNamed(name);
    Apply(NodeUpserted{spec});
    model_.specs[name] = spec;
  }

  void RemoveNode(const std::string& name) {
    Apply(NodeRemoved{name});
    model_.specs.erase(name);
  }

  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }

  RandomWorld world_;
  Engine engine_;
  SimClock clock_;
  ClusterState state_;
  Model model_;
  std::shared_ptr<const Snapshot> old_;
  int reserved_ = 0, conflicts_ = 0;
};

TEST(ClusterStateProperty, KeepsTheBooksAndNeverReservesBeyondTheCapacity) {
  int reserved = 0, conflicts = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    RandomRun run(seed);
    run.Start();
    for (int i = 0; i < kOperations && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("operation " + std::to_string(i));
      run.Step();
      ExpectSameBooks(run.state(), run.model());
      ExpectSameGangs(run.state(), run.model());
    }
    reserved += run.reserved();
    conflicts += run.conflicts();
  }
  EXPECT_GT(reserved, Drawn(1000)) << "the runs must exercise Reserve";
  EXPECT_GT(conflicts, Drawn(100)) << "and its refusals";
}

TEST(ClusterStateProperty, ForgetUndoesReserveExactly) {
  int undone = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    RandomWorld world(seed);
    ClusterState state;
    world.Populate(state, kNodes, kPods);
    Engine engine(AProfile(world));
    for (int i = 0; i < 10; ++i) {
      const PodRequest pod = world.APodNumbered(kPods + i);
      const auto before = state.Current();
      for (NodeIndex node = 0; node < before->size(); ++node) {
        const auto placement = engine.PlaceOn(before, pod.shape, node);
        if (!placement) continue;
        const auto reserved = state.Reserve(pod, *placement, Instant::max());
        ASSERT_TRUE(reserved.has_value()) << reserved.error().message;
        ASSERT_TRUE(state.Forget(pod.id.uid));
        ASSERT_TRUE(*state.Current() == *before);
        ++undone;
      }
    }
  }
  EXPECT_GT(undone, Drawn(1000));
}

using Sequence = std::vector<ClusterEvent>;  // of one object, in its own order

std::vector<Sequence> RandomSequences(RandomWorld& world) {
  std::vector<Sequence> sequences;
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    Sequence sequence = {NodeUpserted{world.ANodeNamed(name)}};
    if (world.Chance(50)) sequence.emplace_back(NodeUpserted{world.ANodeNamed(name)});
    if (world.Chance(30)) sequence.emplace_back(NodeRemoved{name});
    if (world.Chance(20)) sequence.emplace_back(NodeUpserted{world.ANodeNamed(name)});
    sequences.push_back(std::move(sequence));
    Sequence claims;
    for (int told = world.Between(0, 2); told > 0; --told) {
      claims.emplace_back(GpusClaimed{name, SomeClaims(world)});
    }
    sequences.push_back(std::move(claims));
    Sequence offers;
    for (int told = world.Between(0, 2); told > 0; --told) {
      const int gpus = world.Between(0, 2);
      offers.emplace_back(GpusOffered{name, gpus == 0 ? NodeMig() : NodeMig(MigByClaims(gpus))});
    }
    sequences.push_back(std::move(offers));
  }
  for (int i = 0; i < kPods; ++i) {
    const PodRequest pod = world.APodNumbered(i);
    const std::string node = "n" + std::to_string(world.Between(0, kNodes - 1));
    const PodBound bound{pod, world.AForeignPlacement(pod.shape, node)};
    Sequence sequence;
    sequence.emplace_back(bound);
    if (world.Chance(30)) sequence.emplace_back(bound);  // seen twice
    if (world.Chance(40)) sequence.emplace_back(PodGone{pod.id.uid});
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// The sequences woven into each other at random, applied in batches of random size.
void ApplyWoven(RandomWorld& world, const std::vector<Sequence>& sequences, ClusterState& state) {
  std::vector<std::size_t> order;  // which sequence goes on
  for (std::size_t i = 0; i < sequences.size(); ++i)
    order.insert(order.end(), sequences[i].size(), i);
  world.Shuffle(order);
  std::vector<std::size_t> next(sequences.size(), 0);
  Sequence batch;
  for (std::size_t i = 0; i < order.size(); ++i) {
    batch.push_back(sequences[order[i]][next[order[i]]++]);
    if (i + 1 < order.size() && world.Chance(60)) continue;
    ASSERT_TRUE(state.Apply(batch).has_value());
    batch.clear();
  }
}

TEST(ClusterStateProperty, GivesTheSameSnapshotForTheSameEventsInAnyLegalOrder) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(SeedIs(seed));
    RandomWorld world(seed);
    const std::vector<Sequence> sequences = RandomSequences(world);
    ClusterState one, other;
    ApplyWoven(world, sequences, one);
    ApplyWoven(world, sequences, other);
    EXPECT_TRUE(*one.Current() == *other.Current());
    const auto pods = one.Everything().pods, others = other.Everything().pods;
    ASSERT_EQ(pods.size(), others.size());
    for (std::size_t i = 0; i < pods.size(); ++i) {
      EXPECT_EQ(pods[i].pod.id, others[i].pod.id);
      EXPECT_EQ(pods[i].placement, others[i].placement);
    }
  }
}

}  // namespace
}  // namespace berth::test::cluster_state_property_test
