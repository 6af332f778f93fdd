// SPDX-License-Identifier: Apache-2.0
#include "node/pods/given.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace berth::test::twice_test {
namespace {

using node::GivenTwice;
using node::ListedPod;
using node::OwnPods;
using Names = std::vector<std::string>;
using std::chrono::seconds;

const std::string kGpu = "nvidia.com/gpu";

void Add(OwnPods::Pods& own, const std::string& name, bool over = false) {
  auto pod = std::make_shared<node::OwnPod>();
  pod->namespace_name = "a";
  pod->name = name;
  pod->uid = "uid-" + name;
  pod->over = over;
  own["a/" + name] = std::move(pod);
}

ListedPod Has(const std::string& name, const Names& devices, const std::string& resource = kGpu) {
  return {"a", name, {{"main", {{resource, devices}}}}};
}

// "g1: p, q"
Names Found(const std::vector<ListedPod>& listed, const OwnPods::Pods& own) {
  Names found;
  for (const GivenTwice& twice : FindTwice(listed, own, {kGpu})) {
    found.push_back(twice.device + ": " + twice.pods[0]->name + ", " + twice.pods[1]->name);
  }
  return found;
}

TEST(FindTwice, NamesTheDeviceAndBothPods) {
  OwnPods::Pods own;
  Add(own, "p");
  Add(own, "q");
  EXPECT_EQ(Found({Has("p", {"g0", "g1"}), Has("q", {"g1", "g2"})}, own), Names{"g1: p, q"});
  EXPECT_TRUE(Found({Has("p", {"g0"}), Has("q", {"g1"})}, own).empty());
}

TEST(FindTwice, LeavesOutWhoIsOverOrNotKnownAndOneNameThatIsListedTwice) {
  OwnPods::Pods own;
  Add(own, "p");
  Add(own, "over", true);
  EXPECT_TRUE(
      Found({Has("p", {"g0"}), Has("over", {"g0"}), Has("new", {"g0"}), Has("p", {"g0"})}, own)
          .empty());
}

TEST(FindTwice, ReplicasOfOneGpuAreDevicesOfTheirOwnAndOtherResourcesAreLeftOut) {
  OwnPods::Pods own;
  Add(own, "p");
  Add(own, "q");
  EXPECT_TRUE(Found({Has("p", {"g0::0"}), Has("q", {"g0::1"})}, own).empty());
  EXPECT_EQ(Found({Has("p", {"g0::1"}), Has("q", {"g0::1"})}, own), Names{"g0::1: p, q"});
  EXPECT_TRUE(Found({Has("p", {"x"}, "a.com/nic"), Has("q", {"x"}, "a.com/nic")}, own).empty());
}

TEST(FindTwice, NamesAtMost64) {
  OwnPods::Pods own;
  Add(own, "p");
  Add(own, "q");
  Names many;
  for (int i = 0; i < 100; ++i) many.push_back("g" + std::to_string(i));
  EXPECT_EQ(Found({Has("p", many), Has("q", many)}, own).size(), node::TwiceGiven::kMost);
}

TEST(TwiceGiven, IsSureOfWhatLastsAndSaysItOnce) {
  OwnPods::Pods own;
  Add(own, "p");
  Add(own, "q");
  const auto found = FindTwice({Has("p", {"g1::2"}), Has("q", {"g1::2"})}, own, {kGpu});
  const Instant start{};
  node::TwiceGiven twice(seconds(4));
  EXPECT_TRUE(twice.Look(found, true, start).empty());
  EXPECT_TRUE(twice.Look({}, true, start + seconds(1)).empty());
  EXPECT_TRUE(twice.empty()) << "the pod before had ended";
  EXPECT_TRUE(twice.Look(found, true, start + seconds(2)).empty());
  EXPECT_TRUE(twice.Look(found, true, start + seconds(5)).empty());
  EXPECT_TRUE(twice.Look(found, false, start + seconds(6)).empty()) << "nobody said who is over";
  EXPECT_EQ(twice.Look(found, true, start + seconds(7)).size(), 1U);
  EXPECT_EQ(twice.Closed(), (node::ClosedDevices{{kGpu, {"g1"}}}));
  EXPECT_TRUE(twice.Look(found, true, start + seconds(8)).empty());
  twice.Look({}, true, start + seconds(9));
  EXPECT_TRUE(twice.Closed().empty());
}

}  // namespace
}  // namespace berth::test::twice_test
