// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/placement.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::placement_test {
namespace {

using ByContainer = std::vector<std::pair<std::string, std::vector<DeviceGrant>>>;

DeviceGrant WholeGpu(int gpu) { return {gpu, kMilliPerGpu, 0}; }

TEST(GrantsByContainer, DealsWholeGpusInTheOrderOfTheContainers) {
  const APod pod = APod("p").Whole(3).Container("a", WholeGpus{2}).Container("b", WholeGpus{1});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {1, 4, 6})),
            (ByContainer{{"a", {WholeGpu(1), WholeGpu(4)}}, {"b", {WholeGpu(6)}}}));
}

TEST(GrantsByContainer, LeavesOutContainersWithoutAGpu) {
  const APod pod = APod("p").Whole(1).Container("log", NoGpu{}).Container("main", WholeGpus{1});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {0})),
            (ByContainer{{"main", {WholeGpu(0)}}}));
}

TEST(GrantsByContainer, PassesTheGpusOfAnInitContainerOn) {
  const APod pod = APod("p")
                       .Whole(3)
                       .InitContainer("warm-up", WholeGpus{3})
                       .InitContainer("check", WholeGpus{1})
                       .Container("a", WholeGpus{2})
                       .Container("b", WholeGpus{1});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {0, 1, 2})),
            (ByContainer{{"warm-up", {WholeGpu(0), WholeGpu(1), WholeGpu(2)}},
                         {"check", {WholeGpu(0)}},
                         {"a", {WholeGpu(0), WholeGpu(1)}},
                         {"b", {WholeGpu(2)}}}));
}

TEST(GrantsByContainer, ASidecarKeepsItsGpuWhileLaterInitContainersUseTheRest) {
  const APod pod = APod("p")
                       .Whole(3)
                       .Container("sidecar", WholeGpus{1})
                       .InitContainer("warm-up", WholeGpus{2})
                       .Container("main", WholeGpus{1});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {0, 1, 2})),
            (ByContainer{{"sidecar", {WholeGpu(0)}},
                         {"warm-up", {WholeGpu(1), WholeGpu(2)}},
                         {"main", {WholeGpu(1)}}}));
}

TEST(GrantsByContainer, GivesNoMoreThanThePlacementHas) {
  const APod pod = APod("p").Whole(3).Container("a", WholeGpus{2}).Container("b", WholeGpus{2});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {5})),
            (ByContainer{{"a", {WholeGpu(5)}}}));
  EXPECT_TRUE(GrantsByContainer(pod.Request(), pod.On("n")).empty());
}

TEST(GrantsByContainer, IsEmptyForAPodWithoutGpu) {
  EXPECT_TRUE(GrantsByContainer(APod("p").Cpu(1).Request(), APod("p").Cpu(1).On("n")).empty());
}

struct ShareCase {
  std::string description;
  GpuShare pod;
  DeviceGrant grant;  // of the whole pod
  GpuShare container;
  DeviceGrant want;
};

TEST(GrantsByContainer, GivesAContainerItsPartOfTheShareAndTheRestInProportion) {
  for (const ShareCase& c : std::vector<ShareCase>{
           {"all of it", {300, 0}, {2, 300, 4800}, {300, 0}, {2, 300, 4800}},
           {"a third by compute", {300, 0}, {2, 300, 4800}, {100, 0}, {2, 100, 1600}},
           {"a quarter by memory", {0, 4000}, {2, 500, 4000}, {0, 1000}, {2, 125, 1000}},
           {"both named", {300, 4000}, {2, 300, 4000}, {100, 3000}, {2, 100, 3000}},
           {"memory not known", {300, 0}, {2, 300, 0}, {100, 0}, {2, 100, 0}},
           {"truncated, never more than the share",
            {300, 0},
            {2, 300, 1000},
            {100, 0},
            {2, 100, 333}}}) {
    PodRequest pod = APod("p").Request();
    pod.shape.gpus = c.pod;
    pod.containers = {{"main", c.container, false}};
    const Placement placement{"n", 0, 0, {c.grant}};
    EXPECT_EQ(GrantsByContainer(pod, placement), (ByContainer{{"main", {c.want}}}))
        << c.description;
  }
}

TEST(GrantsByContainer, GivesEveryContainerItsPartOfEachOfSeveralGpus) {
  const APod pod = APod("p")
                       .Shares(2, 300, 3000)
                       .Container("a", GpuShare{.milli = 200, .memory_mib = 1000, .count = 2})
                       .Container("b", GpuShare{.milli = 100, .memory_mib = 2000, .count = 2});
  EXPECT_EQ(GrantsByContainer(pod.Request(), pod.On("n", {1, 4})),
            (ByContainer{{"a", {{1, 200, 1000}, {4, 200, 1000}}},
                         {"b", {{1, 100, 2000}, {4, 100, 2000}}}}));
}

TEST(GrantsByContainer, DividesMemoryByTheCardWithoutARemainder) {
  PodRequest pod = APod("p")
                       .Container("a", GpuShare{.milli = 200, .memory_milli = 100})
                       .Container("b", GpuShare{.memory_milli = 200})
                       .Request();
  pod.shape.gpus = GpuShare{.milli = 200, .memory_milli = 300};
  EXPECT_EQ(GrantsByContainer(pod, {"n", 0, 0, {{0, 200, 1000}}}),
            (ByContainer{{"a", {{0, 200, 333}}}, {"b", {{0, 134, 667}}}}));
}

TEST(GrantsByContainer, GivesEveryContainerOfASharePartsOfTheSameGpu) {
  const APod pod = APod("p")
                       .Share(500)
                       .InitContainer("warm-up", GpuShare{500, 0})
                       .Container("a", GpuShare{200, 0})
                       .Container("b", GpuShare{300, 0});
  const Placement placement{"n", 0, 0, {{3, 500, 8000}}};
  EXPECT_EQ(GrantsByContainer(pod.Request(), placement),
            (ByContainer{
                {"warm-up", {{3, 500, 8000}}}, {"a", {{3, 200, 3200}}}, {"b", {{3, 300, 4800}}}}));
}

}  // namespace
}  // namespace berth::test::placement_test
