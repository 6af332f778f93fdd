// SPDX-License-Identifier: Apache-2.0
//
// MIG devices under random grants and releases, against the rules of what goes together told once
// more (test/support/mig_sets.h).
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"
#include "test/support/mig_sets.h"

namespace berth::test::mig_property_test {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr int kOperations = 80, kPods = 40;
const std::vector<std::string> kProducts = {"A100-40GB", "A30-24GB", "RTX-PRO-6000-BW-96GB"};

// A GPU by hand: the placements on it.
using Layout = std::vector<RowAndStart>;

Layout LayoutOf(const MigProduct& product, MigSet set) {
  const std::vector<RowAndStart> all = PlacementsByHand(product);
  Layout layout;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((set >> i & 1) != 0) layout.push_back(all[i]);
  }
  return layout;
}

// Whether the rows fit, tried in every way.
bool FitsByHand(const MigSpec& spec, std::vector<Layout> taken, const std::vector<int>& rows) {
  if (rows.empty()) return true;
  const std::vector<int> rest(rows.begin() + 1, rows.end());
  const std::vector<RowAndStart> all = PlacementsByHand(*spec.product);
  for (std::size_t gpu = 0; gpu < taken.size(); ++gpu) {
    const Layout instances = LayoutOf(*spec.product, spec.gpus[gpu].instances);
    for (const RowAndStart& placement : spec.dynamic ? all : instances) {
      if (placement.first != rows.front()) continue;
      std::vector<Layout> after = taken;
      const bool is_taken = std::ranges::find(after[gpu], placement) != after[gpu].end();
      after[gpu].push_back(placement);
      if (is_taken || !GoTogetherByHand(*spec.product, after[gpu])) continue;
      if (FitsByHand(spec, after, rest)) return true;
    }
  }
  return false;
}

class MigRun {
 public:
  explicit MigRun(std::uint64_t seed)
      : random_(seed), engine_(BuildProfile(*FindBuiltinProfile("mig-packing"), {}).value()) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < 3; ++i) {
      events.emplace_back(NodeUpserted{ANode("n" + std::to_string(i)).Mig(ASpec()).Spec()});
    }
    EXPECT_TRUE(state_.Apply(events));
  }

  void Step() {
    const std::uint64_t what = random_.Below(100);
    const std::string uid = "uid-" + std::to_string(random_.Below(kPods));
    if (what < 55) return Place();
    if (what < 65) return (void)state_.Confirm(uid);
    if (what < 75) return (void)state_.Forget(uid);
    if (what < 90) return Apply(PodGone{uid});
    BindPastBerth(uid);
  }

  void ExpectValidLayouts() const {
    const auto snapshot = state_.Current();
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      const Node& node = snapshot->node(i);
      const MigSpec& spec = *node.spec().mig;
      for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
        const MigSet taken = node.mig().taken()[gpu];
        ASSERT_TRUE(GoTogetherByHand(*spec.product, LayoutOf(*spec.product, taken)));
        if (!spec.dynamic) {
          ASSERT_EQ(taken & ~spec.gpus[gpu].instances, 0U);
        }
      }
    }
    const AuditReport report = Audit(state_.Everything(), Instant(), std::chrono::seconds(1));
    ASSERT_EQ(report.double_grants, 0U);
    ASSERT_EQ(report.unknown_devices, 0U);
    ASSERT_EQ(report.differences, 0U);
  }

  [[nodiscard]] int placed() const { return placed_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  MigSpec ASpec() {
    const std::string& product = kProducts[random_.Below(kProducts.size())];
    MigSpec spec = DynamicMig(1 + static_cast<int>(random_.Below(2)), product);
    spec.dynamic = random_.Below(3) > 0;
    if (!spec.dynamic) {
      for (MigGpu& gpu : spec.gpus) gpu.instances = SomeInstances(*spec.product);
    }
    const std::vector<MigAllocator> allocators = {MigAllocator::kBerth, MigAllocator::kFirstFit,
                                                  MigAllocator::kDriver, MigAllocator::kHighOrLow};
    spec.allocator = allocators[random_.Below(allocators.size())];
    return spec;
  }

  MigSet SomeInstances(const MigProduct& product) {
    MigSet instances = 0;
    for (MigSet left = product.Addable(0); left != 0; left = product.Addable(instances)) {
      std::uint64_t skip = random_.Below(static_cast<std::uint64_t>(std::popcount(left)));
      for (; skip > 0; --skip) left &= left - 1;
      instances |= left & (~left + 1);
    }
    return instances;
  }

  // One device, or two of any profiles of the product.
  PodRequest APodOf(const MigProduct& product, const std::string& uid, std::vector<int>& rows) {
    APod pod(uid.substr(4));
    const std::uint64_t devices = 1 + random_.Below(2);
    for (std::uint64_t i = 0; i < devices; ++i) {
      rows.push_back(static_cast<int>(random_.Below(product.rows().size())));
    }
    std::map<int, int> counts;
    for (const int row : rows) ++counts[row];
    for (const auto& [row, count] : counts) {
      pod.Mig(MigProfileName(product.row(row).profile), count);
    }
    return pod.Request();
  }

  void Place() {
    const auto snapshot = state_.Current();
    const auto index = static_cast<NodeIndex>(random_.Below(snapshot->size()));
    const Node& node = snapshot->node(index);
    const MigSpec& spec = *node.spec().mig;
    const std::string uid = "uid-" + std::to_string(random_.Below(kPods));
    if (state_.FindPod(uid)) return;
    std::vector<int> rows;
    const PodRequest pod = APodOf(*spec.product, uid, rows);
    const auto placement = engine_.PlaceOn(snapshot, pod.shape, index);
    if (spec.allocator == MigAllocator::kBerth || rows.size() == 1) {
      std::vector<Layout> taken;
      for (const MigSet set : node.mig().taken()) taken.push_back(LayoutOf(*spec.product, set));
      ASSERT_EQ(placement.has_value(), FitsByHand(spec, taken, rows)) << uid;
    }
    if (!placement) {
      ++refused_;
      return;
    }
    ++placed_;
    const auto reserved = state_.Reserve(pod, *placement, Instant::max());
    ASSERT_TRUE(reserved) << reserved.error().message;
    for (const MigGrant& grant : placement->mig) {
      ASSERT_EQ(grant.exact(), spec.allocator == MigAllocator::kBerth);
    }
  }

  // Somebody else's pod: nobody says what it has.
  void BindPastBerth(const std::string& uid) {
    const auto snapshot = state_.Current();
    const Node& node = snapshot->node(static_cast<NodeIndex>(random_.Below(snapshot->size())));
    std::vector<int> rows;
    const PodRequest pod = APodOf(*node.spec().mig->product, uid, rows);
    Apply(PodBound{pod, {node.spec().name, 0, 0, {}}});
  }

  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  Random random_;
  Engine engine_;
  ClusterState state_;
  int placed_ = 0, refused_ = 0;
};

TEST(MigProperty, NoSequenceOfGrantsAndReleasesYieldsAnInvalidLayout) {
  int placed = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MigRun run(seed);
    for (int i = 0; i < kOperations && !testing::Test::HasFailure(); ++i) {
      run.Step();
      run.ExpectValidLayouts();
    }
    placed += run.placed();
    refused += run.refused();
  }
  EXPECT_GT(placed, 1000);
  EXPECT_GT(refused, 1000);
}

// Pods of priorities 0..2 on one node; what is evicted suffices, and none of it is in vain.
TEST(MigProperty, VictimsMakeRoomAndNoneOfThemIsSpared) {
  int evicted = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const MigSpec spec = random.Below(2) == 0 ? DynamicMig(2) : StaticMig(2, kBalanced);
    Node node = ANode("n").Mig(spec).Build();
    Engine engine(BuildProfile(*FindBuiltinProfile("mig-packing"), {}).value());
    const std::vector<std::string> profiles = {"1g.5gb", "2g.10gb", "3g.20gb"};
    for (int i = 0; i < 14; ++i) {
      const std::string profile = profiles[random.Below(profiles.size())];
      APod pod = APod(std::to_string(i)).Mig(profile).Priority(static_cast<int>(random.Below(3)));
      const std::vector<std::shared_ptr<const Node>> nodes = {std::make_shared<const Node>(node)};
      const auto placed = engine.PlaceOn(std::make_shared<const Snapshot>(nodes), pod.Shape(), 0);
      if (!placed) continue;
      node.Put(std::make_shared<const PodRecord>(
          PodRecord{pod.Request(), *placed, PodState::kBound, {}}));
    }
    const std::string wanted = profiles[random.Below(profiles.size())];
    const PodRequest pod = APod("new").Mig(wanted).Priority(2).Request();
    const Reason reason = FirstObjection(node, pod.shape);
    const auto added = AddedVictims(node, pod, {}, {});
    const bool could =
        reason == Reason::kFits || AfterEvictions(node, pod, reason) == Reason::kMigBusy;
    ASSERT_EQ(added.has_value(), could) << CodeOf(reason);
    if (!added) continue;
    const auto without = [&node](const std::set<std::string>& gone) {
      return node.Without(
          [&gone](const PodRecord& held) { return gone.contains(held.pod.id.uid); });
    };
    const std::set<std::string> all(added->begin(), added->end());
    ASSERT_EQ(FirstObjection(without(all), pod.shape), Reason::kFits);
    for (const std::string& uid : all) {
      std::set<std::string> fewer = all;
      fewer.erase(uid);
      ASSERT_NE(FirstObjection(without(fewer), pod.shape), Reason::kFits) << uid;
      ASSERT_LT(node.FindPod(uid)->pod.priority, 2);
    }
    evicted += static_cast<int>(all.size());
  }
  EXPECT_GT(evicted, 100);
}

}  // namespace
}  // namespace berth::test::mig_property_test
