// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_choice.h"

#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "base/random.h"
#include "scoring/devices/device_picker.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::claim_choice_test {
namespace {

constexpr char kDriver[] = "gpu.nvidia.com";

// A node of so many whole GPUs, two in each NUMA node.
NodeDevices ANode(const std::string& name, int gpus, const std::vector<int>& taken = {}) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = name;
  slice->driver = kDriver;
  slice->pool = name;
  slice->slices_in_pool = 1;
  for (int i = 0; i < gpus; ++i) {
    PublishedDevice device{.name = "gpu-" + std::to_string(i),
                           .seen = cel::Device(kDriver),
                           .taints = {},
                           .consumes = {}};
    device.seen.SetAttribute("type", std::string("gpu"));
    device.seen.SetAttribute("numaNode", std::int64_t{i / 2});
    device.seen.SetAttribute("uuid", name + std::to_string(i));
    slice->devices.push_back(std::move(device));
  }
  NodeDevices node{GatherPools({slice}), {}};
  for (const int gpu : taken) node.taken.emplace(name, "gpu-" + std::to_string(gpu));
  return node;
}

DeviceClaim Ask(std::int64_t count, const std::string& selector = "true") {
  DeviceWant want{.name = {},
                  .device_class = "gpu",
                  .selectors = {selector},
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {}};
  return {{{"r", {want}}}};
}

std::optional<DeviceClass> FindClass(std::string_view name) {
  DeviceClass gpu;
  gpu.name = "gpu";
  gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
  return name == "gpu" ? std::optional(gpu) : std::nullopt;
}

// "b: gpu-0 gpu-1", or how it ended.
std::string Choose(const DeviceClaim& claim,
                   const std::vector<std::pair<std::string, NodeDevices>>& nodes) {
  auto question = ClaimQuestion::Make({claim}, FindClass);
  if (!question) return question.error().message;
  std::vector<ClaimNode> given;
  for (const auto& [name, devices] : nodes) given.push_back({name, &devices});
  const ClaimChoice choice = ChooseForClaims(*question, given);
  if (choice.end == SearchEnd::kNone) return "none";
  if (choice.end == SearchEnd::kError) return "error";
  if (choice.end == SearchEnd::kUnknown) return "unknown";
  std::string text(given[choice.node].name);
  text += ":";
  for (const ChosenDevice& device : choice.devices) text += " " + device.device;
  return text;
}

TEST(ClaimChoice, TakesGpusOfOneNumaNodeWhereItBreaksLeast) {
  EXPECT_EQ(Choose(Ask(2), {{"a", ANode("a", 4)}, {"b", ANode("b", 4, {0})}}), "b: gpu-2 gpu-3");
  EXPECT_EQ(Choose(Ask(1), {{"a", ANode("a", 4)}, {"b", ANode("b", 4, {3})}}), "b: gpu-2");
  EXPECT_EQ(Choose(Ask(4), {{"a", ANode("a", 4)}, {"b", ANode("b", 4, {0})}}),
            "a: gpu-0 gpu-1 gpu-2 gpu-3");
  EXPECT_EQ(Choose(Ask(5), {{"a", ANode("a", 4)}}), "none");
}

// The node with GPUs that several claims may share, 80 of memory each, in steps of 10. used: so
// much of a GPU is given.
NodeDevices Shared(NodeDevices node, const std::map<int, std::int64_t>& used = {}) {
  auto slice = std::make_shared<PublishedSlice>(*node.pools[0].slices[0]);
  DeviceCapacity memory{.name = "memory", .there_is = 80, .unasked = 80};
  memory.least = memory.step = 10;
  for (PublishedDevice& device : slice->devices) {
    device.divisible = true;
    device.capacity = std::make_shared<const DeviceCapacities>(DeviceCapacities{memory});
  }
  for (const auto& [gpu, milli] : used) {
    node.parts[{node.pools[0].name, "gpu-" + std::to_string(gpu)}] = {{"memory", milli}};
  }
  node.pools = GatherPools({slice});
  return node;
}

DeviceClaim AskMemory(std::int64_t memory) {
  DeviceClaim claim = Ask(1);
  claim.requests[0].wants[0].capacity = {{"memory", memory}};
  return claim;
}

TEST(ClaimChoice, PartsGoWhereOthersAreAndLeastIsLeft) {
  const NodeDevices idle = Shared(ANode("a", 2));
  const NodeDevices used = Shared(ANode("b", 3), {{1, 30}, {2, 50}});
  EXPECT_EQ(Choose(AskMemory(30), {{"a", idle}, {"b", used}}), "b: gpu-2") << "it is full then";
  EXPECT_EQ(Choose(AskMemory(21), {{"a", idle}, {"b", used}}), "b: gpu-2") << "rounded up to 30";
  EXPECT_EQ(Choose(AskMemory(40), {{"a", idle}, {"b", used}}), "b: gpu-1");
  EXPECT_EQ(Choose(AskMemory(60), {{"a", idle}, {"b", used}}), "b: gpu-0") << "fewest are free";
  EXPECT_EQ(Choose(AskMemory(90), {{"a", idle}, {"b", used}}), "none");
  EXPECT_EQ(Choose(Ask(1), {{"b", Shared(ANode("b", 2), {{0, 10}})}}), "b: gpu-1") << "all of it";
  EXPECT_EQ(Choose(Ask(2), {{"b", Shared(ANode("b", 2), {{0, 10}})}}), "none");
  EXPECT_EQ(Choose(AskMemory(10), {{"a", ANode("a", 2)}}), "none") << "they say no memory";
  DeviceClaim cores = Ask(1);
  cores.requests[0].wants[0].capacity = {{"cores", 1}};
  EXPECT_EQ(Choose(cores, {{"b", used}}), "none");
}

TEST(ClaimChoice, CapacitiesAreRoundedAsTheirPolicySays) {
  DeviceCapacity capacity{.name = "c", .there_is = 100};
  const auto taken = [&capacity](std::int64_t asked) {
    const auto all = capacity.TakenFor(&asked);
    return all && capacity.Admits(*all) ? *all : -1;
  };
  EXPECT_EQ(capacity.TakenFor(nullptr), 100);
  EXPECT_EQ(taken(7), 7);
  capacity.values = {10, 40};
  EXPECT_EQ(taken(7), 10);
  EXPECT_EQ(taken(11), 40);
  EXPECT_EQ(taken(41), -1) << "none of the values";
  capacity.values = {};
  capacity.least = 10;
  EXPECT_EQ(taken(7), 10);
  EXPECT_EQ(taken(13), 13);
  capacity.step = 4;
  EXPECT_EQ(taken(13), 14);
  EXPECT_EQ(taken(14), 14);
  capacity.most = 20;
  EXPECT_EQ(taken(21), -1);
  capacity.unasked = 25;
  EXPECT_EQ(capacity.TakenFor(nullptr), 25);
  EXPECT_TRUE(capacity.Admits(25)) << "what it is by itself";
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  capacity.most.reset();
  EXPECT_EQ(capacity.TakenFor(&huge), std::nullopt) << "rounded up it is beyond 64 bits";
}

TEST(ClaimChoice, OfEqualNodesItIsTheFirstByName) {
  EXPECT_EQ(Choose(Ask(1), {{"b", ANode("b", 4)}, {"a", ANode("a", 4)}}), "a: gpu-0");
}

// The nodes as they are published, and so with what they are like.
std::vector<std::pair<std::string, NodeDevices>> Published(
    std::vector<std::pair<std::string, NodeDevices>> nodes) {
  DeviceOffers offers;
  offers.Put(std::move(nodes));
  std::vector<std::pair<std::string, NodeDevices>> published;
  const auto current = offers.Current();
  for (const auto& [name, devices] : *current) published.emplace_back(name, *devices);
  return published;
}

// So much do the selectors of the claim cost on those nodes.
std::uint64_t CostOn(const DeviceClaim& claim,
                     const std::vector<std::pair<std::string, NodeDevices>>& nodes) {
  auto question = ClaimQuestion::Make({claim}, FindClass);
  std::vector<ClaimNode> given;
  for (const auto& [name, devices] : nodes) given.push_back({name, &devices});
  (void)ChooseForClaims(*question, given);
  return question->cost();
}

TEST(ClaimChoice, OfNodesThatAreAlikeOneIsLookedAt) {
  // Three of four: no node is such that no other can be better.
  std::vector<std::pair<std::string, NodeDevices>> nodes = {{"a", ANode("a", 4)}};
  const std::uint64_t once = CostOn(Ask(3), Published(nodes));
  for (const char* const name : {"b", "c", "d"}) nodes.emplace_back(name, ANode(name, 4));
  EXPECT_EQ(CostOn(Ask(3), Published(nodes)), once);
  EXPECT_EQ(CostOn(Ask(3), nodes), 4 * once);
  nodes.emplace_back("e", ANode("e", 4, {1}));
  nodes.emplace_back("f", ANode("f", 4, {1}));
  EXPECT_LT(CostOn(Ask(3), Published(nodes)), 2 * once);
  const std::string own =
      "'u' in device.attributes['gpu.nvidia.com'] || "
      "device.attributes['gpu.nvidia.com'].uuid == 'c2'";
  EXPECT_EQ(Choose(Ask(1, own), Published(nodes)), "c: gpu-2");
}

TEST(ClaimChoice, WhatNodesAreLikeChangesNoChoice) {
  Random random(7);
  const std::vector<std::string> selectors = {
      "true",
      "device.attributes['gpu.nvidia.com'].numaNode == 1",
      "device.attributes['gpu.nvidia.com'].uuid.endsWith('3')",
      "device.attributes['gpu.nvidia.com'].size() > 2",
      "device.attributes['gpu.nvidia.com'].exists(id, id == 'uuid')",
      "device.attributes['gpu.nvidia.com'].broken == 1"};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::string, NodeDevices>> nodes;
    for (int i = 0; i < 12; ++i) {
      const std::string name = "n" + std::to_string(i);
      std::vector<int> taken;
      for (int gpu = 0; gpu < 4; ++gpu) {
        if (random.Below(3) == 0) taken.push_back(gpu);
      }
      nodes.emplace_back(name, ANode(name, random.Below(4) == 0 ? 6 : 4, taken));
    }
    DeviceClaim claim = Ask(1 + static_cast<std::int64_t>(random.Below(4)),
                            selectors[random.Below(selectors.size())]);
    if (random.Below(3) == 0) {
      claim.constraints.push_back(
          {.distinct = random.Below(2) == 0,
           .attribute = random.Below(2) == 0 ? "gpu.nvidia.com/numaNode" : "gpu.nvidia.com/uuid",
           .requests = {}});
    }
    EXPECT_EQ(Choose(claim, Published(nodes)), Choose(claim, nodes)) << "round " << round;
  }
}

TEST(ClaimChoice, OfTheNodesThatHaveTheDevicesThePolicysBestIsTaken) {
  const NodeDevices a = ANode("a", 4), b = ANode("b", 4, {0, 1}), c = ANode("c", 4, {0, 1, 2});
  const auto chosen = [&](std::int64_t count, int rank_a, int rank_b, int rank_c) {
    auto question = ClaimQuestion::Make({Ask(count)}, FindClass);
    const std::vector<ClaimNode> nodes = {{"a", &a, nullptr, nullptr, rank_a},
                                          {"b", &b, nullptr, nullptr, rank_b},
                                          {"c", &c, nullptr, nullptr, rank_c}};
    return nodes[ChooseForClaims(*question, nodes).node].name;
  };
  EXPECT_EQ(chosen(1, 0, 0, 0), "c") << "the fewest that are free";
  EXPECT_EQ(chosen(1, 0, 1, 2), "a");
  EXPECT_EQ(chosen(1, 1, 0, 0), "c");
  EXPECT_EQ(chosen(2, 2, 1, 0), "b") << "the best one has too few";
  EXPECT_EQ(chosen(3, 2, 1, 0), "a");
}

// On the first 8 GPUs of a machine as the device plugin would have them.
std::string ChooseOn(const test::ANode& machine, const DeviceClaim& claim, const APod& pod) {
  const NodeDevices devices = ANode("GPU-", 8);
  const Node node = machine.Build();
  RequestShape gpus = pod.Shape();
  gpus.gpu_resource = kOfClaims;
  auto question = ClaimQuestion::Make({claim}, FindClass);
  const std::vector<ClaimNode> nodes = {{"n", &devices, &node}};
  std::string text;
  for (const ChosenDevice& device : ChooseForClaims(*question, nodes, &gpus).devices) {
    text += device.device.substr(3);
  }
  return text;
}

TEST(ClaimChoice, OfTheGpusOfANodeItTakesThoseThatTheDevicePickerTakes) {
  test::ANode machine = test::ANode("n").Gpus(8).Linked(LinksOf(SwitchedPairs())).Named();
  const auto picked = [&machine](const APod& pod) {
    std::string text;
    const auto choices = DeviceChoices(machine.Build(), pod.Shape(), DeviceRule::kFirst);
    ForEachGpu(choices.front().gpus, [&text](int gpu) { text += "-" + std::to_string(gpu); });
    return text;
  };
  for (const int count : {1, 2, 3, 4, 6}) {
    EXPECT_EQ(ChooseOn(machine, Ask(count), APod("p").Whole(count)),
              picked(APod("p").Whole(count)));
  }
  machine.Holding(APod("a").Labelled({{"role", "prefill"}}).Whole(1), {0});
  const APod far = APod("p").Whole(2).Far("role", "prefill");
  EXPECT_EQ(ChooseOn(machine, Ask(2), far), picked(far)) << "the other socket";
  EXPECT_NE(picked(far), picked(APod("p").Whole(2)));
  // The claims do not allow these.
  const std::string first = "device.attributes['gpu.nvidia.com'].numaNode == 0";
  EXPECT_EQ(ChooseOn(machine, Ask(1, first), APod("p").Whole(1).Far("role", "prefill")), "-1");
}

TEST(ClaimChoice, ANodeOnWhichASelectorFailsLeavesTheOthers) {
  NodeDevices without = ANode("a", 2);
  auto slice = std::make_shared<PublishedSlice>(*without.pools[0].slices[0]);
  for (PublishedDevice& device : slice->devices) device.seen = cel::Device(kDriver);
  without = {GatherPools({slice}), {}};
  const DeviceClaim claim = Ask(1, "device.attributes['gpu.nvidia.com'].numaNode == 0");
  EXPECT_EQ(Choose(claim, {{"a", without}, {"b", ANode("b", 4)}}), "b: gpu-0");
  EXPECT_EQ(Choose(claim, {{"a", without}}), "error");
}

TEST(ClaimChoice, WhatIsNotReadIsSaid) {
  DeviceClaim claim = Ask(1, "device.");
  EXPECT_TRUE(Choose(claim, {}).starts_with("a selector is not read: "));
  claim = Ask(1);
  claim.requests[0].wants[0].device_class = "gone";
  EXPECT_EQ(Choose(claim, {}), "there is no DeviceClass gone");
}

TEST(ClaimChoice, NodesBeyondTheStepsAreNotLookedAt) {
  // 16 of 32: far more sets than are looked at on one node, and so on each.
  std::vector<std::pair<std::string, NodeDevices>> nodes;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "n" + std::to_string(10 + i);
    nodes.emplace_back(name, ANode(name, 32));
  }
  nodes.emplace_back("z", ANode("z", 33, {0}));
  EXPECT_GT(std::int64_t{kMostSetSteps} * 20, kMostChoiceSteps);
  EXPECT_EQ(Choose(Ask(16), nodes).substr(0, 3), "n10");
}

TEST(ClaimQuestion, KnowsWhetherAllDevicesAreThoseOfItsDriver) {
  DeviceClaim claim = Ask(1);
  claim.requests[0].wants[0].all = true;
  EXPECT_FALSE(ClaimQuestion::Make({claim}, FindClass)->WantsAllOfAnyDriver());
  const auto any = [](std::string_view) { return std::optional(DeviceClass()); };
  EXPECT_TRUE(ClaimQuestion::Make({claim}, any)->WantsAllOfAnyDriver());
}

TEST(ClaimQuestion, SelectorsThatCostTooMuchAreGivenUp) {
  // Some 80,000 units for each device.
  const std::string dear =
      "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, "
      "[1,2,3,4,5,6,7,8,9].all(d, a + b + c + d < 100)))) && false";
  auto question = ClaimQuestion::Make({Ask(1, dear)}, FindClass);
  ASSERT_TRUE(question) << question.error().message;
  std::vector<std::pair<std::string, NodeDevices>> nodes;
  for (int i = 0; i < 200; ++i) {
    nodes.emplace_back("n" + std::to_string(i), ANode("n" + std::to_string(i), 4));
  }
  EXPECT_EQ(Choose(Ask(1, dear), nodes), "unknown");
}

TEST(ClaimQuestion, WhatItsConstraintsTakeCountsAsLooksAtDevices) {
  const std::string own = "device.attributes['gpu.nvidia.com'].uuid != 'x'";
  DeviceClaim claim = Ask(9, own);
  DeviceConstraint constraint;
  constraint.attribute = "gpu.nvidia.com/uuid";
  claim.constraints.assign(32, constraint);
  const NodeDevices node = ANode("n", 8);
  auto plain = ClaimQuestion::Make({Ask(9, own)}, FindClass),
       bound = ClaimQuestion::Make({claim}, FindClass);
  ASSERT_TRUE(plain && bound);
  EXPECT_LE(plain->On(node.pools, node.taken).prepared, 8);
  EXPECT_GE(bound->On(node.pools, node.taken).prepared, 32 * 8);
  std::vector<std::pair<std::string, NodeDevices>> nodes;
  for (int i = 0; i < 1000; ++i) {
    nodes.emplace_back("n" + std::to_string(i), ANode("n" + std::to_string(i), 8));
  }
  EXPECT_EQ(Choose(Ask(9, own), nodes), "none");
  EXPECT_EQ(Choose(claim, nodes), "unknown");
}

}  // namespace
}  // namespace berth::test::claim_choice_test
