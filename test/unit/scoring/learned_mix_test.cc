// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/request_mix.h"

#include <gtest/gtest.h>

#include <cmath>

#include "test/support/builders.h"

namespace berth::test::learned_mix_test {
namespace {

RequestShape Whole(int gpus) { return APod("p").Whole(gpus).Shape(); }
RequestShape Share(int milli) { return APod("p").Share(milli).Shape(); }

double WeightOf(const RequestMix& mix, const RequestShape& shape) {
  for (const RequestClass& entry : mix) {
    if (entry.shape == shape) return entry.weight;
  }
  return 0;
}

TEST(LearnedMix, KnowsNothingBeforeTheFirstPodAndSomethingAfterIt) {
  LearnedMix mix(LearningParameters{});
  EXPECT_TRUE(mix.Current().mix->empty());
  mix.Observe(Whole(2));
  ASSERT_EQ(mix.Current().mix->size(), 1u);
  EXPECT_EQ(mix.Current().mix->front().shape, Whole(2));
  EXPECT_EQ(mix.Current().mix->front().weight, 1);
}

TEST(LearnedMix, TellsTheSharesOfTheClassesMostFrequentFirst) {
  LearnedMix mix({1'000'000, 1});
  for (int i = 0; i < 6; ++i) mix.Observe(i % 3 == 0 ? Whole(1) : Share(300));
  const RequestMix told = *mix.Current().mix;
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].shape, Share(300));
  EXPECT_NEAR(told[0].weight, 4.0 / 6, 1e-5);
  EXPECT_NEAR(told[1].weight, 2.0 / 6, 1e-5);
}

TEST(LearnedMix, IsOneClassWhateverTheMemoryAndKeepsTheMean) {
  LearnedMix mix({1'000'000, 1});
  mix.Observe(APod("a").Whole(1).MemoryGib(1).Shape());
  mix.Observe(APod("b").Whole(1).MemoryGib(3).Shape());
  ASSERT_EQ(mix.Current().mix->size(), 1u);
  EXPECT_NEAR(static_cast<double>(mix.Current().mix->front().shape.memory_bytes), 2.0 * kGib, 1e4);
}

TEST(LearnedMix, IsOneClassWhateverThePodsSayThatTheyNeed) {
  LearnedMix mix({1'000'000, 1});
  RequestShape large = Whole(1);
  large.min_gpu_memory_mib = 40'960;
  mix.Observe(large);
  mix.Observe(APod("b").Whole(1).Isolated(Isolation::kHardware).Shape());
  mix.Observe(APod("c").Whole(1).Spreads(Spread::kNode, "web").Shape());
  mix.Observe(APod("d").Whole(1).DiskGib(200).Shape());
  RequestShape wishing = Whole(1);
  wishing.nodes = {{"rdma"}, {}, {{"spot", -10}}};
  mix.Observe(wishing);
  ASSERT_EQ(mix.Current().mix->size(), 1u);
  EXPECT_EQ(mix.Current().mix->front().shape, Whole(1));
}

TEST(LearnedMix, CountsAPodHalfAfterTheHalfLife) {
  LearnedMix mix({100, 1});
  mix.Observe(Whole(8));
  for (int i = 0; i < 100; ++i) mix.Observe(Whole(1));
  const LearnedMix::Memory memory = mix.Remember();
  EXPECT_EQ(memory.pods, 101);
  EXPECT_NEAR(WeightOf(memory.classes, Whole(8)), 0.5, 1e-9);
}

TEST(LearnedMix, FollowsAMixThatChanges) {
  LearnedMix mix({100, 10});
  for (int i = 0; i < 5000; ++i) mix.Observe(Whole(8));
  for (int i = 0; i < 1000; ++i) mix.Observe(Share(500));
  EXPECT_GT(WeightOf(*mix.Current().mix, Share(500)), 0.99);
  for (int i = 0; i < 200'000; ++i) mix.Observe(Whole(1));
  const RequestMix told = *mix.Current().mix;
  EXPECT_GT(WeightOf(told, Whole(1)), 0.999999) << "counts stay in range for ever";
  for (const RequestClass& entry : told) EXPECT_TRUE(std::isfinite(entry.weight));
}

TEST(LearnedMix, BeginsEpochsMoreRarelyAsPodsGrow) {
  LearnedMix mix({8000, 1000});
  std::vector<int> begun;
  std::uint64_t epoch = mix.Current().number;
  for (int pods = 1; pods <= 20'000; ++pods) {
    mix.Observe(Whole(1));
    if (mix.Current().number != epoch) begun.push_back(pods);
    epoch = mix.Current().number;
  }
  ASSERT_GT(begun.size(), 10u);
  EXPECT_EQ(begun[0], 1);
  EXPECT_EQ(begun[1], 2);
  EXPECT_LT(begun.size(), 60u);
  EXPECT_EQ(begun.back() - begun[begun.size() - 2], 1000);
}

TEST(LearnedMix, ForgetsTheRarestOfTooManyClasses) {
  LearnedMix mix({1'000'000, 200});
  for (int i = 0; i < 5; ++i) mix.Observe(Whole(4));
  for (int cpu = 0; cpu < 5000; ++cpu) mix.Observe(APod("p").CpuMilli(cpu).Share(1).Shape());
  EXPECT_LE(mix.Current().mix->size(), LearnedMix::kMaxClasses);
  EXPECT_LE(mix.Remember().classes.size(), 2 * LearnedMix::kMaxClasses);
  EXPECT_EQ(mix.Current().mix->front().shape, Whole(4));
}

TEST(LearnedMix, TakesUpWhereAnotherOneWas) {
  LearnedMix before({500, 100});
  for (int i = 0; i < 1000; ++i)
    before.Observe(i % 7 < 3 ? Whole(i % 4 + 1) : Share(i % 5 * 100 + 1));
  LearnedMix after({500, 100});
  after.Restore(before.Remember());
  const auto a = before.Remember(), b = after.Remember();
  EXPECT_EQ(b.pods, a.pods);
  ASSERT_EQ(b.classes.size(), a.classes.size());
  for (std::size_t i = 0; i < a.classes.size(); ++i) {
    EXPECT_EQ(b.classes[i].shape, a.classes[i].shape);
    EXPECT_DOUBLE_EQ(b.classes[i].weight, a.classes[i].weight);
  }
  EXPECT_EQ(after.Current().mix->size(), a.classes.size()) << "usable at once";
}

TEST(LearnedMix, AShareByMemoryCountsTheComputeOfTheFirstFittingGpu) {
  const auto snapshot = SnapshotOf(
      {ANode("a").Gpus(1, 10'000).Model("small"), ANode("b").Gpus(1, 40'000).Model("large")});
  const auto compute = [&](const APod& pod) {
    return WithCompute(pod.Shape(), *snapshot).milli_per_gpu();
  };
  EXPECT_EQ(compute(APod("p").ShareByMemory(5000)), 500);
  EXPECT_EQ(compute(APod("p").ShareByMemory(20'000)), 500);
  EXPECT_EQ(compute(APod("p").ShareByMemory(5000).Models({"large"})), 125);
  EXPECT_EQ(compute(APod("p").ShareByMemory(90'000)), 1000) << "no GPU could hold it";
  EXPECT_EQ(compute(APod("p").Share(300, 5000)), 300);
  EXPECT_EQ(compute(APod("p").Whole(2)), 1000);
}

TEST(LearnedMix, MemoryByTheCardIsThatOfTheFirstGpuThatCouldHoldIt) {
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1, 16'000)});
  RequestShape shape;
  shape.gpus = GpuShare{.milli = 300, .memory_milli = 250, .count = 1};
  EXPECT_EQ(WithCompute(shape, *snapshot).gpus, GpuAsk(GpuShare{300, 4000}));
  shape.models = {"none"};
  EXPECT_EQ(WithCompute(shape, *snapshot).gpus, GpuAsk(GpuShare{300, 0})) << "there is none";
}

TEST(LearnedMix, AnEpochSaysHowManyPodsHadCome) {
  LearnedMix mix({100, 10});
  mix.Observe(APod("a").Whole(1).Shape());
  mix.Observe(APod("b").Cpu(1).Shape());
  EXPECT_EQ(mix.Current().pods, 2);
  EXPECT_EQ(mix.Current().gpu_pods, 1);
}

TEST(BoundPods, CountAsIfTheyHadJustComeAndNeverForTooMuch) {
  const auto snapshot = SnapshotOf({ANode("a")
                                        .Gpus(8)
                                        .Holding(APod("x").Whole(2), {0, 1})
                                        .Holding(APod("y").Whole(2), {2, 3})
                                        .Holding(APod("z").Share(300), {4})
                                        .Holding(APod("c").Cpu(1), {}),
                                    ANode("b")});
  const LearnedMix::Memory all = BoundPods(*snapshot, 100);
  EXPECT_EQ(all.pods, 4);
  LearnedMix mix(LearningParameters{});
  mix.Restore(all);
  EXPECT_DOUBLE_EQ(WeightOf(*mix.Current().mix, Whole(2)), 0.5);
  EXPECT_DOUBLE_EQ(WeightOf(*mix.Current().mix, Share(300)), 0.25);
  double weights = 0;
  for (const RequestClass& entry : BoundPods(*snapshot, 2).classes) weights += entry.weight;
  EXPECT_DOUBLE_EQ(weights, 2) << "pods that stay long are there more often than they come";
  EXPECT_EQ(BoundPods(*SnapshotOf({ANode("b")}), 100).pods, 0);
}

}  // namespace
}  // namespace berth::test::learned_mix_test
