// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_use.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::gpu_cells_test {
namespace {

NodeSpec FourGpus() {
  NodeSpec spec;
  spec.name = "n1";
  spec.cpu_milli = 64'000;
  spec.memory_bytes = std::int64_t{256} << 30;
  spec.gpus.assign(4, GpuSpec{"", 80'000, true});
  return spec;
}

std::shared_ptr<const PodRecord> Holding(const std::string& uid, std::vector<DeviceGrant> grants,
                                         PodState state = PodState::kBound,
                                         const std::string& gang = "") {
  PodRecord record;
  record.pod.id = {uid, "ns", "pod-" + uid};
  record.pod.shape.gpus = WholeGpus{static_cast<int>(grants.size())};
  if (!gang.empty()) record.pod.gang.id = {"", "ns", gang};
  record.placement.node = "n1";
  record.placement.cpu_milli = 1000;
  record.placement.grants = std::move(grants);
  record.state = state;
  return std::make_shared<const PodRecord>(std::move(record));
}

std::string CellsWith(const NodeSpec& spec, PodRecords pods = {}) {
  return GpuCells(Node(std::make_shared<const NodeSpec>(spec), std::move(pods)));
}

TEST(GpuCells, AnIdleNodeIsIdle) { EXPECT_EQ(CellsWith(FourGpus()), "...."); }

TEST(GpuCells, WholeGpusOfPodsAndOfGroupsLookDifferent) {
  EXPECT_EQ(
      CellsWith(FourGpus(), {Holding("a", {{0}}), Holding("b", {{1}, {2}}, PodState::kBound, "g")}),
      "#gg.");
}

TEST(GpuCells, WhatIsPlannedForAGroupIsHeld) {
  EXPECT_EQ(CellsWith(FourGpus(), {Holding("a", {{3}}, PodState::kPlanned, "g")}), "...h");
  EXPECT_EQ(CellsWith(FourGpus(), {Holding("a", {{3}}, PodState::kReserved, "g")}), "...g");
}

TEST(GpuCells, SharesShowHowMuchIsHeld) {
  EXPECT_EQ(CellsWith(FourGpus(),
                      {Holding("a", {{0, 300}}), Holding("b", {{0, 300}}), Holding("c", {{1, 500}}),
                       Holding("d", {{1, 500}}), Holding("e", {{2, 10}})}),
            "6a1.");
}

TEST(GpuCells, SickGpusAreOutOfOrderUnlessSomebodyHoldsThem) {
  NodeSpec spec = FourGpus();
  spec.gpus[0].healthy = spec.gpus[1].healthy = false;
  EXPECT_EQ(CellsWith(spec, {Holding("a", {{0}})}), "#x..");
}

TEST(GpuCells, IdleGpusOfANodeThatTakesNoPodsAreOfNoUse) {
  NodeSpec not_ready = FourGpus(), cordoned = FourGpus(), foreign = FourGpus();
  not_ready.ready = false;
  cordoned.taints = {{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule}};
  foreign.places.foreign = true;
  for (const NodeSpec& spec : {not_ready, cordoned, foreign}) {
    EXPECT_EQ(CellsWith(spec, {Holding("a", {{0}})}), "#uuu");
  }
}

TEST(GpuCells, IdleGpusWithoutCpuOrMemoryAreOfNoUse) {
  NodeSpec spec = FourGpus();
  spec.cpu_milli = 1000 + kLeastCpuMilli;  // a pod below takes 1000
  EXPECT_EQ(CellsWith(spec, {Holding("a", {{0}})}), "#...");
  spec.cpu_milli -= 1;
  EXPECT_EQ(CellsWith(spec, {Holding("a", {{0}})}), "#uuu");
  spec.cpu_milli = 0;  // not known
  EXPECT_EQ(CellsWith(spec), "....");
  spec.memory_bytes = kLeastMemoryBytes - 1;
  EXPECT_EQ(CellsWith(spec), "uuuu");
}

TEST(GpuCells, PartitionedGpusShowDevicesAtTheirFirstSlice) {
  const NodeSpec spec = ANode("n1").Mig(StaticMig(1, kBalanced)).Spec();
  EXPECT_EQ(CellsWith(spec), "[FfFFFfff]");
  PodRecord record;
  record.pod.id = {"a", "ns", "a"};
  record.placement.node = "n1";
  MigGrant grant{.gpu = 0, .start = 4, .profile = *ParseMigProfile("3g.20gb")};
  record.placement.mig = {grant};
  record.pod.shape.gpus = MigSlices{{MigWant{.profile = grant.profile}}};
  record.state = PodState::kBound;
  EXPECT_EQ(CellsWith(spec, {std::make_shared<const PodRecord>(record)}), "[FfFFTttt]");
}

}  // namespace
}  // namespace berth::test::gpu_cells_test
