// SPDX-License-Identifier: Apache-2.0
//
// Room for pods with claims of their own, and whom to evict to make it.
#include "scoring/claims/claim_question.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "scoring/device_victims.h"
#include "test/support/builders.h"

namespace berth::test::claim_room_test {
namespace {

constexpr char kDriver[] = "gpu.nvidia.com";

std::optional<DeviceClass> FindClass(std::string_view name) {
  DeviceClass gpu;
  gpu.name = "gpu";
  gpu.whole = name == "gpu";
  gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
  return name == "gpu" || name == "mig" ? std::optional(gpu) : std::nullopt;
}

DeviceClaim Asks(std::int64_t count, const std::string& selector = "true",
                 const std::string& device_class = "gpu") {
  DeviceWant want{.name = {},
                  .device_class = device_class,
                  .selectors = {selector},
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {}};
  return {{{"r", {want}}}};
}

DeviceClaim AsksMemory(std::int64_t memory, std::int64_t count = 1) {
  DeviceClaim claim = Asks(count);
  claim.requests[0].wants[0].capacity = {{"memory", memory}};
  return claim;
}

// Nodes of four GPUs of DRA each, two in each NUMA node, and their pods.
class ClaimRoomTest : public testing::Test {
 protected:
  struct Held {
    APod pod;
    std::vector<int> gpus;
    std::string claim;  // in the namespace default
    bool by_name = false;
    std::int64_t part = 0;  // of the memory of each; 0: all of it
  };
  void Add(const std::string& name, const std::vector<Held>& pods) {
    NodeSpec spec = ANode(name).Gpus(4).Spec();
    spec.by_claims = {{"nvidia.com/gpu", {0, 1, 2, 3}}};
    if (is_shared_) {  // Berth does not count these
      spec.gpus.clear();
      spec.by_claims.clear();
    }
    auto claims = std::make_shared<std::vector<ClaimedGpu>>();
    for (const Held& held : pods) {
      const std::string uid = held.by_name ? held.pod.Request().id.uid : "";
      for (const int gpu : held.gpus) {
        const std::string device = "gpu-" + std::to_string(gpu);
        claims->push_back({"default/" + held.claim, device, "", gpu, "", -1, uid});
        if (held.part == 0) {
          devices_[name].taken.emplace(name, device);
          continue;
        }
        claims->back().shared = true;
        claims->back().parts = {{"memory", held.part}};
        AddUses(devices_[name].parts[{name, device}], {{"memory", held.part}});
      }
    }
    Node node(std::make_shared<const NodeSpec>(spec), {}, claims);
    for (const Held& held : pods) {
      auto record = std::make_shared<PodRecord>(
          *held.pod.BoundOn(name, held.by_name ? held.gpus : std::vector<int>()));
      if (held.by_name) record->pod.made_claim = NumberOfClaim(held.claim);
      node.Put(std::move(record));
    }
    nodes_.push_back(std::make_shared<const Node>(std::move(node)));
    Publish(name);
  }
  static APod Low(const std::string& name, const std::string& claim) {
    return APod(name).Claims({claim});
  }
  // "n: uid-a uid-b", or what is the outcome.
  std::string Victims(const DeviceClaim& claim, const APod& asks = APod("p").Priority(100)) {
    auto room = ClaimRoom::Make({claim}, FindClass, Offers(), asks.Shape());
    if (!room) return room.error().message;
    const Snapshot snapshot(nodes_);
    PodRequest pod = asks.Request();
    pod.claims = {"c"};
    const EvictionLimits limits{{}, [](const GangId&) { return std::size_t{2}; }};
    const DeviceVictims found = VictimsForDevices(snapshot, pod, limits, {}, &*room);
    if (found.outcome == DeviceVictims::Outcome::kWait) return "wait";
    if (found.outcome == DeviceVictims::Outcome::kNowhere) return "nowhere";
    if (found.outcome == DeviceVictims::Outcome::kUndecided) return "undecided";
    std::string text(snapshot.names().name(found.node));
    text += ":";
    for (const std::string& uid : found.uids) text += " " + uid;
    return text;
  }
  std::shared_ptr<const DeviceOffers::ByNode> Offers() {
    DeviceOffers offers;
    std::vector<std::pair<std::string, NodeDevices>> all(devices_.begin(), devices_.end());
    offers.Put(std::move(all));
    return offers.Current();
  }

  std::vector<std::shared_ptr<const Node>> nodes_;
  bool is_shared_ = false;  // GPUs of nodes added from now on: of 80 of memory

 private:
  void Publish(const std::string& name) {
    auto slice = std::make_shared<PublishedSlice>();
    slice->name = slice->pool = slice->node = name;
    slice->driver = kDriver;
    slice->slices_in_pool = 1;
    for (int i = 0; i < 4; ++i) {
      PublishedDevice device{.name = "gpu-" + std::to_string(i),
                             .seen = cel::Device(kDriver),
                             .taints = {},
                             .consumes = {}};
      device.seen.SetAttribute("numaNode", std::int64_t{i / 2});
      if (is_shared_) {
        device.divisible = true;
        device.capacity = std::make_shared<const DeviceCapacities>(
            DeviceCapacities{{.name = "memory", .there_is = 80}});
      }
      slice->devices.push_back(std::move(device));
    }
    devices_[name].pools = GatherPools({std::move(slice)});
  }

  std::map<std::string, NodeDevices> devices_;
};

TEST_F(ClaimRoomTest, IsWhatIsFreeAndWhatPodsLeaveThatHaveTheirClaimAlone) {
  Add("n", {{Low("a", "ca"), {0, 1}, "ca"}, {Low("b", "cb"), {2}, "cb"}});
  const auto has = [this](std::int64_t count, std::vector<std::string> gone) {
    auto room = ClaimRoom::Make({Asks(count)}, FindClass, Offers(), {});
    return room->Has(*nodes_[0], WithoutPods(*nodes_[0], gone));
  };
  EXPECT_TRUE(has(1, {}));
  EXPECT_FALSE(has(2, {}));
  EXPECT_TRUE(has(2, {"uid-b"}));
  EXPECT_FALSE(has(3, {"uid-b"}));
  EXPECT_TRUE(has(3, {"uid-a"}));
  EXPECT_TRUE(has(4, {"uid-a", "uid-b"}));
}

TEST_F(ClaimRoomTest, IsNotKnownOfClaimsForOtherThanANumberOfGpus) {
  Add("n", {});
  EXPECT_EQ(Victims(Asks(1, "true", "mig")),
            "its claims do not ask for a number of GPUs or parts of GPUs");
  EXPECT_EQ(Victims(Asks(1, "no CEL (")).substr(0, 22), "a selector is not read");
  DeviceClaim all = Asks(1);
  all.requests[0].wants[0].all = true;
  EXPECT_EQ(Victims(all), "its claims do not ask for a number of GPUs or parts of GPUs");
  EXPECT_EQ(Victims(Asks(1'000'000)),
            "its claims do not ask for a number of GPUs or parts of GPUs");
}

TEST_F(ClaimRoomTest, VictimsAreTheFewestOfTheLowestPriorityWhicheverWayTheyGotTheirGpus) {
  Add("n", {{Low("a", "ca").Priority(5), {0}, "ca"},
            {Low("b", "cb").Priority(1), {1}, "cb"},
            {APod("named").Whole(2).Priority(1), {2, 3}, "made", true}});
  EXPECT_EQ(Victims(Asks(1)), "n: uid-b");
  EXPECT_EQ(Victims(Asks(2)), "n: uid-named");
  EXPECT_EQ(Victims(Asks(3)), "n: uid-b uid-named");
  EXPECT_EQ(Victims(Asks(4)), "n: uid-a uid-b uid-named");
  EXPECT_EQ(Victims(Asks(5)), "nowhere");
  EXPECT_EQ(Victims(Asks(1), APod("p").Priority(1)), "nowhere") << "of its own priority";
  EXPECT_EQ(Victims(Asks(1), APod("p").Priority(100).NeverPreempts()), "nowhere");
}

TEST_F(ClaimRoomTest, VictimsAreThoseWhoseGpusTheClaimsTake) {
  Add("n", {{Low("a", "ca"), {0}, "ca"},
            {Low("b", "cb"), {1}, "cb"},
            {Low("c", "cc").Priority(2), {2}, "cc"},
            {Low("d", "cd").Priority(9), {3}, "cd"}});
  const std::string second = "device.attributes['gpu.nvidia.com'].numaNode == 1";
  EXPECT_EQ(Victims(Asks(1, second)), "n: uid-c") << "not the pods that cost less";
  EXPECT_EQ(Victims(Asks(2, second)), "n: uid-c uid-d");
  EXPECT_EQ(Victims(Asks(3, second)), "nowhere");
  DeviceClaim together = Asks(2);
  together.constraints = {{false, "gpu.nvidia.com/numaNode", {}}};
  EXPECT_EQ(Victims(together), "n: uid-a uid-b");
}

TEST_F(ClaimRoomTest, ClaimsOfSeveralPodsAndOfNobodyStay) {
  Add("n", {{Low("a", "shared"), {0, 1}, "shared"},
            {Low("b", "shared"), {}, "shared"},
            {Low("c", "other").Namespace("x"), {2}, "other"},  // its claim is another one
            {Low("d", "cd"), {3}, "cd"}});
  EXPECT_EQ(Victims(Asks(1)), "n: uid-d");
  EXPECT_EQ(Victims(Asks(2)), "nowhere");
}

TEST_F(ClaimRoomTest, NobodyIsToGoWhereThereIsRoomOrThePodIsNotLetIn) {
  Add("n", {{Low("a", "ca"), {0, 1, 2}, "ca"}});
  EXPECT_EQ(Victims(Asks(1)), "wait") << "there is room";
  EXPECT_EQ(Victims(Asks(2), APod("p").Priority(100).Cpu(1000)), "nowhere");
  EXPECT_EQ(Victims(Asks(2), APod("p").Priority(100).Gang("g")), "nowhere");
  OwnToScheduler own;
  own.resources = true;  // its claims
  EXPECT_EQ(Victims(Asks(2), APod("p").Priority(100).LeftToScheduler(own)), "n: uid-a");
  own.host_ports = true;
  EXPECT_EQ(Victims(Asks(2), APod("p").Priority(100).LeftToScheduler(own)), "undecided");
}

TEST_F(ClaimRoomTest, AGangGoesWholeOrNotAtAll) {
  Add("n", {{Low("a", "ca").Gang("g"), {0, 1}, "ca"}, {Low("b", "cb").Gang("g"), {2, 3}, "cb"}});
  EXPECT_EQ(Victims(Asks(1)), "n: uid-a uid-b");
}

class PartsRoomTest : public ClaimRoomTest {
 protected:
  PartsRoomTest() { is_shared_ = true; }
};

TEST_F(PartsRoomTest, IsWhatIsLeftOfEachAndWhatPodsGiveBack) {
  Add("n", {{Low("a", "ca"), {0, 1, 2}, "ca", false, 60},
            {Low("b", "cb"), {3}, "cb", false, 50},
            {Low("c", "cc"), {3}, "cc", false, 20}});
  const auto has = [this](const DeviceClaim& claim, std::vector<std::string> gone) {
    auto room = ClaimRoom::Make({claim}, FindClass, Offers(), {});
    return room->Has(*nodes_[0], WithoutPods(*nodes_[0], gone));
  };
  EXPECT_TRUE(has(AsksMemory(20), {}));
  EXPECT_FALSE(has(AsksMemory(21), {}));
  EXPECT_TRUE(has(AsksMemory(30), {"uid-c"}));
  EXPECT_FALSE(has(AsksMemory(31), {"uid-c"}));
  EXPECT_TRUE(has(AsksMemory(60), {"uid-b"}));
  EXPECT_TRUE(has(Asks(1), {"uid-b", "uid-c"})) << "all of it";
  EXPECT_FALSE(has(Asks(1), {"uid-b"}));
  EXPECT_TRUE(has(AsksMemory(70, 3), {"uid-a"}));
  EXPECT_FALSE(has(AsksMemory(81), {"uid-a", "uid-b", "uid-c"}));
}

TEST_F(PartsRoomTest, VictimsAreTheFewestWhosePartsSuffice) {
  Add("n", {{Low("a", "ca"), {0}, "ca", false, 40},
            {Low("b", "cb"), {0}, "cb", false, 40},
            {Low("c", "cc"), {1}, "cc", false, 70},
            {Low("d", "cd").Priority(9), {2}, "cd", false, 80},
            {Low("e", "ce").Priority(200), {3}, "ce", false, 50}});
  EXPECT_EQ(Victims(AsksMemory(30)), "wait") << "of gpu-3 there is room";
  EXPECT_EQ(Victims(AsksMemory(40)), "n: uid-a");
  EXPECT_EQ(Victims(AsksMemory(41)), "n: uid-c") << "one, not two";
  EXPECT_EQ(Victims(Asks(1)), "n: uid-c") << "all of a GPU";
  EXPECT_EQ(Victims(AsksMemory(50, 2)), "n: uid-a uid-b uid-c");
  EXPECT_EQ(Victims(AsksMemory(50, 3)), "n: uid-a uid-b uid-c uid-d");
  EXPECT_EQ(Victims(AsksMemory(50, 4)), "nowhere") << "uid-e stays";
  EXPECT_EQ(Victims(AsksMemory(81)), "nowhere") << "no GPU has so much";
  EXPECT_EQ(Victims(AsksMemory(60), APod("p").Priority(100).Cpu(1000)), "nowhere");
}

TEST_F(PartsRoomTest, WhoseEndGivesNothingBackStays) {
  Add("n", {{Low("a", "shared"), {0, 1, 2, 3}, "shared", false, 30},
            {Low("b", "shared"), {}, "shared"},
            {Low("c", "cc"), {0}, "cc", false, 20},
            {Low("d", "cd"), {0, 1, 2, 3}, "cd", false, 20}});
  EXPECT_EQ(Victims(AsksMemory(50)), "n: uid-d");
  EXPECT_EQ(Victims(AsksMemory(51)), "nowhere") << "two pods have the rest";
  EXPECT_EQ(Victims(AsksMemory(50), APod("p").Priority(0)), "nowhere");
}

TEST_F(PartsRoomTest, OfAPartOfWhichTheNodeIsShortTheGpuWithMostLeftIsTold) {
  Add("n", {{Low("a", "ca"), {0, 1}, "ca", false, 60}, {Low("b", "cb"), {2, 3}, "cb", false, 50}});
  const auto lack = [this](const DeviceClaim& claim) {
    auto found = ClaimRoom::Make({claim}, FindClass, Offers(), {})->LackOn(*nodes_[0]);
    return found ? found->device + " " + std::to_string(found->left) : "";
  };
  EXPECT_EQ(lack(AsksMemory(40)), "gpu-2 30");
  EXPECT_EQ(lack(AsksMemory(30)), "");
  EXPECT_EQ(lack(AsksMemory(90)), "") << "no GPU has so much";
}

}  // namespace
}  // namespace berth::test::claim_room_test
