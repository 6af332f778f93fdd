// SPDX-License-Identifier: Apache-2.0
//
// Two claims that have one device: who gets an Event, and which claim loses it.
#include "server/dialects/dra/dra_watch.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::dialects::claim_collisions_test {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;
using kube::ApiRequest;
using kube::ApiResponse;
using std::chrono::seconds;

class ScriptedEvictor final : public PodEvictor {
 public:
  Outcome Evict(const PodId& pod) override {
    asked.push_back(pod.name);
    return answer;
  }
  Names asked;
  Outcome answer = Outcome::kEvicted;
};

// Objects by path: GET, and PATCH of a status with the promise of resourceVersion.
class FakeObjects final : public kube::ApiClient {
 public:
  Result<ApiResponse> Send(const ApiRequest& request) override {
    std::string path = request.path;
    if (request.method == "PATCH") path.resize(path.size() - std::string("/status").size());
    if (!objects.contains(path)) return ApiResponse{404, "{}", {}};
    Json& object = objects.at(path);
    if (request.method == "PATCH") {
      if (before_patch) before_patch(object);
      const Json patch = Json::parse(request.body);
      if (patch["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"]) {
        return ApiResponse{409, "{}", {}};
      }
      object.merge_patch(patch);
    }
    return ApiResponse{200, object.dump(), {}};
  }
  Result<ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                             const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams here");
  }
  std::map<std::string, Json> objects;
  std::function<void(Json& object)> before_patch;
};

// Claims "old" and "young" have gpu-0 of node g1, for pods of their names.
class ClaimCollisionsTest : public testing::Test, private kube::WriteFence {
 protected:
  ClaimCollisionsTest() {
    Allocate("old", "gpu-0", "2026-11-28T10:00:00Z");
    Allocate("young", "gpu-0", "2026-11-28T10:00:01Z");
    Allocate("other", "gpu-1", "2026-11-28T10:00:02Z");
  }
  static std::string ClaimPath(const std::string& name) {
    return "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/" + name;
  }
  static std::string PodPath(const std::string& name) {
    return "/api/v1/namespaces/ns/pods/" + name;
  }
  Json& Claim(const std::string& name) { return api_.objects.at(ClaimPath(name)); }
  Json& Pod(const std::string& name) { return api_.objects.at(PodPath(name)); }

  void Allocate(const std::string& name, const std::string& device, const std::string& time) {
    api_.objects[ClaimPath(name)] = {
        {"metadata",
         {{"name", name}, {"namespace", "ns"}, {"uid", "u-" + name}, {"resourceVersion", "7"}}},
        {"spec", {{"devices", {{"requests", Json::array()}}}}},
        {"status",
         {{"allocation",
           {{"allocationTimestamp", time},
            {"devices",
             {{"results", Json::array({{{"request", "r"},
                                        {"driver", "gpu.nvidia.com"},
                                        {"pool", "g1"},
                                        {"device", device}}})}}}}},
          {"reservedFor",
           Json::array({{{"resource", "pods"}, {"name", name}, {"uid", "uid-" + name}}})}}}};
    api_.objects[PodPath(name)] = {
        {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}}},
        {"spec", Json::object()},
        {"status", {{"phase", "Pending"}}}};
    Show(name);
  }
  void Show(const std::string& name) {
    all_.claims().Put(DecodeResourceClaim(test::Padded(Claim(name).dump())).value());
  }
  // Its controller is a ReplicaSet, or nobody.
  void IsBound(const std::string& name, const std::string& phase, bool controlled = true) {
    Pod(name)["spec"]["nodeName"] = "g1";
    Pod(name)["status"]["phase"] = phase;
    PodRequest request = test::APod(name).Request();
    request.controller = controlled ? "uid-of-a-replica-set" : "";
    Placement placement;
    placement.node = "g1";
    const ClusterEvent event = PodBound{request, placement, false};
    EXPECT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  bool HasDevice(const std::string& name) {
    return DecodeResourceClaim(test::Padded(Claim(name).dump())).value().allocated;
  }
  void After(Duration time) {
    for (Duration passed{0}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      collisions_.Look();
    }
  }

  FakeObjects api_;
  ClusterState state_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers devices_;
  OpenClaims open_;
  DeviceClaims all_{{state_, offers_, classes_, devices_, open_},
                    true,
                    [](std::string_view, std::string_view, const std::string&) {}};
  SimClock clock_;
  ScriptedEvictor evictor_;
  Names told_, log_;
  Instant writable_until_ = Instant::max();
  ClaimCollisions collisions_{
      {.write = {.client = api_, .clock = clock_, .fence = *this, .sleep = [](Duration) {}},
       .state = state_,
       .on_unreadable = {},
       .on_log = [this](bool, std::string_view, std::string_view text) { log_.emplace_back(text); },
       .evictor = &evictor_,
       .warn =
           [this](const PodId& pod, const std::string& reason, const std::string& text) {
             told_.push_back(pod.full_name() + " " + reason + ": " + text);
           }},
      all_};

 private:
  [[nodiscard]] Instant WritableUntil() const override { return writable_until_; }
};

TEST_F(ClaimCollisionsTest, TheYoungerClaimIsDeallocatedAndBothPodsAreTold) {
  EXPECT_EQ(all_.overlapping(), 1U) << "the metric counts it at once";
  After(ClaimCollisions::kSettles);
  EXPECT_TRUE(HasDevice("young")) << "what is under way may end first";
  After(seconds(2));
  EXPECT_FALSE(HasDevice("young"));
  EXPECT_FALSE(Claim("young")["status"].contains("reservedFor"));
  EXPECT_TRUE(HasDevice("old"));
  EXPECT_TRUE(HasDevice("other"));
  const std::string text =
      " DeviceInTwoClaims: device gpu-0 of node g1 is in ResourceClaims ns/old and ns/young; Berth "
      "takes it from ns/young";
  EXPECT_EQ(told_, (Names{"ns/old" + text, "ns/young" + text}));
  EXPECT_EQ(log_.size(), 1U);
  Show("young");
  After(seconds(120));
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_EQ(all_.overlapping(), 0U);
  EXPECT_EQ(collisions_.taken_back(), 1U);
  EXPECT_EQ(evictor_.asked, Names());
}

TEST_F(ClaimCollisionsTest, OfPartsThatAreMoreThanThereIsTheYoungestGoesBack) {
  auto published = std::make_shared<PublishedSlice>();
  published->name = published->pool = published->node = "g1";
  published->driver = kGpuDriver;
  published->slices_in_pool = 1;
  PublishedDevice device{
      .name = "gpu-0", .seen = cel::Device("gpu.nvidia.com"), .taints = {}, .consumes = {}};
  device.divisible = true;
  device.capacity = std::make_shared<const DeviceCapacities>(
      DeviceCapacities{{.name = "memory", .there_is = 80'000}});
  published->devices.push_back(device);
  ResourceSlice slice{"", "g1", "g1", "g1", 1, {{"gpu-0", "GPU-x", 0, "", -1}}};
  slice.published = std::move(published);
  all_.slices().Put(slice);
  for (const char* const name : {"old", "young"}) {
    Json& result = Claim(name)["status"]["allocation"]["devices"]["results"][0];
    result["shareID"] = "s";
    result["consumedCapacity"] = {{"memory", "40"}};
    Show(name);
  }
  After(seconds(8));
  EXPECT_EQ(told_, Names()) << "there is room for both";
  Json& young = Claim("young")["status"]["allocation"]["devices"]["results"][0];
  young["consumedCapacity"] = {{"memory", "41"}};
  Show("young");
  After(seconds(8));
  EXPECT_TRUE(HasDevice("old"));
  EXPECT_FALSE(HasDevice("young"));
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[0],
            "ns/old DeviceInTwoClaims: device gpu-0 of node g1 has too little memory for "
            "ResourceClaims ns/old and ns/young; Berth takes it from ns/young");
}

TEST_F(ClaimCollisionsTest, ThePodThatRunsKeepsTheDevice) {
  IsBound("young", "Running");
  After(seconds(7));
  EXPECT_TRUE(HasDevice("young"));
  EXPECT_FALSE(HasDevice("old"));
}

TEST_F(ClaimCollisionsTest, ABoundPodThatHasNotStartedIsEvicted) {
  IsBound("old", "Running");
  IsBound("young", "Pending");
  After(seconds(7));
  EXPECT_EQ(evictor_.asked, Names{"young"});
  EXPECT_TRUE(HasDevice("young")) << "Kubernetes deallocates it, once the pod is gone";
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_TRUE(log_[0].ends_with("; Berth evicts the pod of ns/young, which has not started"));
}

TEST_F(ClaimCollisionsTest, WhereBothRunOrNobodyMakesThePodAnewPeopleAreAskedToDeleteOne) {
  IsBound("old", "Running");
  IsBound("young", "Pending", false);
  After(seconds(200));
  EXPECT_EQ(evictor_.asked, Names());
  EXPECT_TRUE(HasDevice("old") && HasDevice("young"));
  EXPECT_EQ(told_.size(), 2U) << "once";
  EXPECT_TRUE(told_[0].starts_with("ns/old DeviceInTwoClaims: delete one of the pods: "));
  Pod("young")["status"]["phase"] = "Running";
  After(seconds(70));
  EXPECT_TRUE(HasDevice("old") && HasDevice("young"));
}

TEST_F(ClaimCollisionsTest, APodThatIsAboutToBeBoundKeepsIts) {
  Pod("young")["status"]["nominatedNodeName"] = "g1";
  After(seconds(7));
  EXPECT_TRUE(HasDevice("young"));
  EXPECT_FALSE(HasDevice("old"));
}

TEST_F(ClaimCollisionsTest, WhatChangesMeanwhileIsLeftAndLookedAtAgain) {
  api_.before_patch = [](Json& object) { object["metadata"]["resourceVersion"] = "8"; };
  IsBound("old", "Running");
  After(seconds(7));
  EXPECT_TRUE(HasDevice("young"));
  api_.before_patch = nullptr;
  After(seconds(61));
  EXPECT_FALSE(HasDevice("young"));
}

TEST_F(ClaimCollisionsTest, NothingIsDoneOnWhatTheWatchAloneShows) {
  Claim("young")["status"] = Json::object();
  After(seconds(120));
  EXPECT_TRUE(HasDevice("old"));
  EXPECT_EQ(told_, Names());
  api_.objects.erase(PodPath("young"));
  Allocate("young", "gpu-0", "2026-11-28T10:00:01Z");
  api_.objects.erase(PodPath("young"));
  After(seconds(120));
  EXPECT_TRUE(HasDevice("old") && HasDevice("young")) << "Kubernetes is about to deallocate it";
}

TEST_F(ClaimCollisionsTest, WhoDoesNotLeadTakesNothing) {
  writable_until_ = Instant::min();
  After(seconds(20));
  EXPECT_TRUE(HasDevice("young"));
  EXPECT_EQ(told_, Names());
}

}  // namespace
}  // namespace berth::dialects::claim_collisions_test
