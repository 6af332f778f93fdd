// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/node.h"

#include <gtest/gtest.h>

#include <string>

#include "test/support/builders.h"

namespace berth::test::node_test {
namespace {

TEST(ValidateNode, TakesNodesFromEmptyToFull) {
  EXPECT_TRUE(Validate(ANode("n").Spec()).has_value());
  EXPECT_TRUE(Validate(ANode("gpu-node-0.rack-7.example").Gpus(kMaxGpusPerNode).Spec()));
  EXPECT_TRUE(Validate(ANode("n").Cpu(0).MemoryGib(0).Gpus(1, 0).Spec()).has_value());
  EXPECT_TRUE(Validate(ANode(std::string(253, 'a')).Spec()).has_value());
}

// Anybody may create thousands of pods with spec.nodeName.
TEST(Node, AnOverfullNodeTakesNothingMore) {
  ANode few = ANode("n").Gpus(2), many = ANode("n").Gpus(2);
  for (int i = 0; i < 4; ++i) few.Holding(APod("p" + std::to_string(i)).Whole(1), {});
  for (int i = 0; i < 1'000; ++i) many.Holding(APod("p" + std::to_string(i)).Whole(1), {});
  EXPECT_EQ(many.Build().unattributed(), 1'000);
  for (std::size_t gpu = 0; gpu < 2; ++gpu) {
    EXPECT_LT(many.Build().gpus()[gpu].milli, 0);
    EXPECT_EQ(many.Build().gpus()[gpu], few.Build().gpus()[gpu]);
  }
  EXPECT_FALSE(many.Build().CanTake(APod("q").Share(1).On("n", {0})));
}

TEST(NodeSpec, HasTheGpusThatItSaysAndNoOthers) {
  const NodeSpec node = ANode("n").Gpus(2).Spec();
  EXPECT_EQ(node.FindGpu(1), &node.gpus[1]);
  for (const int beyond : {2, 63, 64, 1'000, DeviceGrant::kUnknown}) {
    EXPECT_EQ(node.FindGpu(beyond), nullptr) << beyond;
    EXPECT_EQ(node.UuidOf(beyond), "");
  }
  const Placement placement = APod("p").Whole(2).On("n", {1, 2});
  EXPECT_EQ(GpusAmong(placement.grants, 2), GpuBit(1));
  EXPECT_EQ(GpusAmong(placement.grants, 0), 0U);
  EXPECT_EQ(CheckDevices(placement, node).error().message,
            "node n: want a node with GPU 2, got one with 2 GPUs");
  EXPECT_TRUE(CheckDevices(placement, ANode("n").Gpus(3).Spec()));
}

TEST(ValidateNode, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string description;
    NodeSpec spec;
    std::string message;
  };
  const std::string long_name(254, 'a');
  for (const Case& c :
       {Case{"no name", ANode("").Spec(), ".name: want a DNS-1123 name, got \"\""},
        Case{"capitals", ANode("Node").Spec(), ".name: want a DNS-1123 name, got \"Node\""},
        Case{"a quote", ANode("a\"b").Spec(), ".name: want a DNS-1123 name, got \"a\"b\""},
        Case{"a slash", ANode("a/b").Spec(), ".name: want a DNS-1123 name, got \"a/b\""},
        Case{"too long", ANode(long_name).Spec(),
             ".name: want a DNS-1123 name, got \"" + long_name + "\""},
        Case{"negative CPU", ANode("n").Cpu(-1).Spec(),
             ".cpu_milli: want a capacity of 0..1000000000000, got -1000"},
        Case{"negative memory", ANode("n").MemoryGib(-1).Spec(),
             ".memory_bytes: want a capacity of 0..1152921504606846976, got -1073741824"},
        Case{"more CPU than any machine has", ANode("n").Cpu(1'000'000'001).Spec(),
             ".cpu_milli: want a capacity of 0..1000000000000, got 1000000001000"},
        Case{"too many GPUs", ANode("n").Gpus(65).Spec(), ".gpus: want at most 64 GPUs, got 65"},
        Case{"negative GPU memory", ANode("n").Gpus(3).GpuMemory(2, -5).Spec(),
             ".gpus[2].memory_mib: want a capacity of 0..1099511627776, got -5"}}) {
    const Status status = Validate(c.spec);
    ASSERT_FALSE(status.has_value()) << c.description;
    EXPECT_EQ(status.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(status.error().message, c.message) << c.description;
  }
}

TEST(Node, StartsWithAllThatItsSpecHas) {
  const Node node = ANode("n").Cpu(8).MemoryGib(32).Gpus(2, 15'000).Build();
  EXPECT_EQ(node.free_cpu_milli(), 8000);
  EXPECT_EQ(node.free_memory_bytes(), 32 * kGib);
  ASSERT_EQ(node.gpus().size(), 2U);
  EXPECT_EQ(node.gpus()[1], (GpuFree{.milli = 1000, .memory_mib = 15'000}));
  EXPECT_TRUE(node.gpus()[1].idle());
  EXPECT_EQ(node.free_gpu_milli(), 2000);
  EXPECT_TRUE(node.tenants().empty());
}

TEST(Node, TakesAPlacementFromWhatIsFree) {
  Node node = ANode("n").Cpu(8).MemoryGib(32).Gpus(3, 16'000).Build();
  const APod pod = APod("p").Share(300, 4000).CpuMilli(500).MemoryGib(2);
  node.Put(pod.BoundOn("n", {1}));
  EXPECT_EQ(node.free_cpu_milli(), 7500);
  EXPECT_EQ(node.free_memory_bytes(), 30 * kGib);
  EXPECT_EQ(node.gpus()[0], (GpuFree{.milli = 1000, .memory_mib = 16'000}));
  EXPECT_EQ(node.gpus()[1], (GpuFree{.milli = 700, .memory_mib = 12'000}));
  EXPECT_FALSE(node.gpus()[1].idle());
  EXPECT_EQ(node.free_gpu_milli(), 2700);
}

TEST(Node, GivesBackExactlyWhatWasTakenInAnyOrder) {
  const APod share = APod("s").Share(300, 4000).Cpu(1), whole = APod("w").Whole(2).Cpu(4);
  const Node empty = ANode("n").Gpus(4).Build();
  Node node = empty;
  node.Put(share.BoundOn("n", {0}));
  node.Put(whole.BoundOn("n", {1, 3}));
  EXPECT_FALSE(node == empty);
  node.Remove(share.Request().id.uid);
  node.Remove(whole.Request().id.uid);
  EXPECT_TRUE(node == empty);
}

TEST(Node, GoesNegativeWhereMoreIsBoundThanItHas) {
  Node node = ANode("n").Cpu(1).Gpus(1).Build();
  const APod pod = APod("p").Whole(1).Cpu(4);
  node.Put(pod.BoundOn("n", {0}));
  node.Put(APod("q").Whole(1).Cpu(4).BoundOn("n", {0}));
  EXPECT_EQ(node.free_cpu_milli(), -7000);
  EXPECT_EQ(node.gpus()[0].milli, -1000);
  EXPECT_EQ(node.free_gpu_milli(), -1000);
}

TEST(Node, CountsGrantsOnGpusThatItDoesNotHaveOnThoseThatItHas) {
  Node node = ANode("n").Gpus(3).Build();
  const APod pod = APod("p").Whole(1);
  node.Put(pod.BoundOn("n", {-1, 1, 64}));
  EXPECT_EQ(node.gpus()[0].milli, 0);
  EXPECT_EQ(node.gpus()[1].milli, 0);
  EXPECT_EQ(node.gpus()[2].milli, 0);
  Node without = ANode("n").Build();
  without.Put(pod.BoundOn("n", {0}));
  EXPECT_EQ(without.gpus().size(), 0u);
}

TEST(Node, CountsItsTenantsByNumberOfGpus) {
  Node node = ANode("n").Gpus(8).Build();
  const APod share = APod("s").Share(100), one = APod("a").Whole(1), four = APod("b").Whole(4);
  const APod cpu_only = APod("c").Cpu(1);
  node.Put(four.BoundOn("n", {0, 1, 2, 3}));
  node.Put(share.BoundOn("n", {4}));
  node.Put(one.BoundOn("n", {5}));
  node.Put(APod("t").Share(100).BoundOn("n", {4}));
  node.Put(cpu_only.BoundOn("n"));
  const auto tenants = [&node] {
    return std::vector<Tenants>(node.tenants().begin(), node.tenants().end());
  };
  EXPECT_EQ(tenants(), (std::vector<Tenants>{{0, 2}, {1, 1}, {4, 1}}));
  node.Remove(one.Request().id.uid);
  node.Remove(share.Request().id.uid);
  EXPECT_EQ(tenants(), (std::vector<Tenants>{{0, 1}, {4, 1}}));
}

TEST(Node, HasNoLimitOfDiskWhereItSaysNothingOfIt) {
  Node node = ANode("n").Build();
  const APod pod = APod("p").DiskGib(1 << 20);
  EXPECT_TRUE(node.CanTake(pod.On("n")).has_value());
  node.Put(pod.BoundOn("n"));
  EXPECT_EQ(node.free_ephemeral_bytes(), Node::kNotTracked);
  EXPECT_TRUE(node.CanTake(APod("q").DiskGib(1 << 20).On("n")).has_value());
}

// The kubelet lowers what is allocatable when its reservations grow.
TEST(Node, KeepsItsPodsWhereItsDiskShrinksBelowWhatTheyHave) {
  const APod held = APod("a").DiskGib(60);
  Node node = ANode("n").DiskGib(50).Holding(held).Build();
  EXPECT_EQ(node.free_ephemeral_bytes(), -10 * kGib);
  EXPECT_TRUE(node.CanTake(APod("p").On("n")).has_value());
  EXPECT_FALSE(node.CanTake(APod("p").DiskGib(1).On("n")).has_value());
  node.Remove(held.Request().id.uid);
  EXPECT_EQ(node.free_ephemeral_bytes(), 50 * kGib);
}

TEST(NodeCanTake, AcceptsWhatFitsToTheLastBit) {
  const Node node = ANode("n").Cpu(4).MemoryGib(8).Gpus(2, 1000).Build();
  const APod pod = APod("p").Share(1000, 1000).Cpu(4).MemoryGib(8);
  EXPECT_TRUE(node.CanTake(pod.On("n", {1})).has_value());
}

TEST(NodeCanTake, NamesTheResourceThatIsShort) {
  const Node node = ANode("n")
                        .Cpu(4)
                        .MemoryGib(8)
                        .DiskGib(2)
                        .Gpus(3, 1000)
                        .Unhealthy(2)
                        .Holding(APod("a").Share(400, 700), {0})
                        .Build();
  struct Case {
    std::string description;
    Placement placement;
    std::string message;
  };
  for (const Case& c :
       {Case{"CPU", APod("p").CpuMilli(4001).On("n"), "cpu_milli: want 4001, free 4000"},
        Case{"memory", APod("p").MemoryGib(9).On("n"),
             "memory_bytes: want 9663676416, free 8589934592"},
        Case{"disk", APod("p").DiskGib(3).On("n"),
             "ephemeral_bytes: want 3221225472, free 2147483648"},
        Case{"compute of a GPU", APod("p").Share(601).On("n", {0}),
             "gpu 0 milli: want 601, free 600"},
        Case{"memory of a GPU", APod("p").Share(1, 301).On("n", {0}),
             "gpu 0 memory_mib: want 301, free 300"},
        Case{"a GPU in use", APod("p").Whole(2).On("n", {0, 1}),
             "gpu 0 milli: want 1000, free 600"},
        Case{"a GPU out of order", APod("p").Whole(1).On("n", {2}), "gpu 2: not healthy"},
        Case{"no such GPU", APod("p").Whole(1).On("n", {3}), "gpu 3: the node has 3"},
        Case{"a negative index", APod("p").Whole(1).On("n", {-1}), "gpu -1: the node has 3"}}) {
    const Status status = node.CanTake(c.placement);
    ASSERT_FALSE(status.has_value()) << c.description;
    EXPECT_EQ(status.error().code, Errc::kConflict) << c.description;
    EXPECT_EQ(status.error().message, c.message) << c.description;
  }
}

TEST(NodeCanTake, RefusesAGpuThatIsNamedTwice) {
  const Node node = ANode("n").Gpus(2).Build();
  const Status status = node.CanTake({"n", 0, 0, {{1, 400, 0}, {1, 400, 0}}});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "gpu 1: want each GPU once and in ascending order");
}

TEST(NodeCanTake, DoesNotMindAnOvercommittedResourceThatIsNotAskedFor) {
  const Node node = ANode("n")
                        .Cpu(1)
                        .MemoryGib(1)
                        .Gpus(2)
                        .Holding(APod("a").Cpu(2).MemoryGib(2).Whole(1), {0})
                        .Build();
  EXPECT_TRUE(node.CanTake(APod("p").Whole(1).On("n", {1})).has_value());
  EXPECT_FALSE(node.CanTake(APod("p").CpuMilli(1).On("n")).has_value());
}

TEST(Node, EqualsAnotherOnlyWhereSpecAndFreeAmountsAndTenantsDo) {
  const ANode base = ANode("n").Gpus(2);
  EXPECT_TRUE(base.Build() == ANode("n").Gpus(2).Build());
  EXPECT_FALSE(base.Build() == ANode("m").Gpus(2).Build());
  EXPECT_FALSE(base.Build() == ANode("n").Gpus(2).NotReady().Build());
  EXPECT_FALSE(base.Build() == ANode("n").Gpus(2).Holding(APod("p").Cpu(1)).Build());
  EXPECT_FALSE(base.Build() == ANode("n").Gpus(2).Holding(APod("p").MemoryGib(1)).Build());
  const ANode disk = ANode("n").DiskGib(9);
  EXPECT_FALSE(disk.Build() == ANode("n").Build());
  EXPECT_FALSE(disk.Build() == ANode("n").DiskGib(9).Holding(APod("p").DiskGib(1)).Build());
  EXPECT_FALSE(base.Build() == ANode("n").Gpus(2).Holding(APod("p").Share(1), {0}).Build());
  EXPECT_FALSE(base.Build() == ANode("n").Gpus(2).Holding(APod("p").Share(1)).Build())
      << "a tenant without a grant";
}

}  // namespace
}  // namespace berth::test::node_test
