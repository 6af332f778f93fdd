// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_allocator.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "server/dialects/dra/device_class_json.h"
#include "test/support/wire_fixture.h"

namespace berth::dialects::device_allocator_test {
namespace {

using Json = nlohmann::json;
using kube::ApiClient;
using kube::ApiRequest;
using kube::ApiResponse;
using kube::StreamSink;
using kube::WriteFence;
using std::chrono::milliseconds;
using Names = std::vector<std::string>;

Json Claim(const std::string& name, const std::string& profile) {
  const Json selector = {
      {"cel",
       {{"expression", "device.attributes['gpu.nvidia.com'].profile == '" + profile + "'"}}}};
  return {{"metadata",
           {{"name", name}, {"namespace", "ns"}, {"uid", "u-" + name}, {"resourceVersion", "1"}}},
          {"spec",
           {{"devices",
             {{"requests", Json::array({{{"name", "gpu"},
                                         {"exactly",
                                          {{"deviceClassName", "mig.nvidia.com"},
                                           {"allocationMode", "ExactCount"},
                                           {"count", 1},
                                           {"selectors", Json::array({selector})}}}}})}}}}}};
}

// The claims of an API server: GET, and PATCH with the promise of resourceVersion.
class FakeClaims final : public ApiClient {
 public:
  Result<ApiResponse> Send(const ApiRequest& request) override {
    const std::lock_guard lock(mutex_);
    const bool is_status = request.path.ends_with("/status");
    const std::string path = request.path.substr(
        0, request.path.size() - (is_status ? std::string("/status").size() : 0));
    const std::string name = path.substr(path.rfind('/') + 1);
    if (request.method == "PATCH") {
      patches.push_back(request.path);
      if (before_patch) before_patch(name, is_status);
      if (fails != 0) return ApiResponse{fails, "{}", {}};
    }
    if (!claims.contains(name)) return ApiResponse{404, "{}", {}};
    Json& claim = claims.at(name);
    if (request.method == "PATCH") {
      EXPECT_EQ(request.content_type, "application/merge-patch+json");
      const Json patch = Json::parse(request.body);
      if (patch["metadata"]["resourceVersion"] != claim["metadata"]["resourceVersion"] ||
          patch["metadata"]["uid"] != claim["metadata"]["uid"]) {
        return ApiResponse{409, R"({"message":"the object has been modified"})", {}};
      }
      claim.merge_patch(patch);
      Touch(name);
      if (after_write) after_write(name);
      if (loses_answers) return Fail(Errc::kUnavailable, "no answer");
    }
    return ApiResponse{200, claim.dump(), {}};
  }
  Result<ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                             const StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams here");
  }

  void Touch(const std::string& name) {
    claims.at(name)["metadata"]["resourceVersion"] = std::to_string(++version_);
  }

  std::map<std::string, Json> claims;
  std::vector<std::string> patches;
  std::function<void(const std::string& name, bool is_status)> before_patch;
  std::function<void(const std::string& name)> after_write;
  int fails = 0;  // the status of every PATCH from now on
  bool loses_answers = false;

 private:
  std::recursive_mutex mutex_;  // the hooks may call Touch
  int version_ = 1;
};

class DeviceAllocatorTest : public testing::Test, private WriteFence {
 protected:
  DeviceAllocatorTest() {
    for (const char* node : {"n1", "n2"}) {
      Json devices = Json::array({WholeGpu("gpu-0", 0, 8)});
      for (int start = 0; start < 7; ++start) devices.push_back(Instance(start));
      PutSlice(node, "cut", devices);
    }
    for (const char* name : {"mig.nvidia.com", "gpu.nvidia.com"}) PutClass(name);
    api_.after_write = [this](const std::string& name) {
      if (watch_works_) Show(name);
    };
  }

  static Json Text(const std::string& text) { return {{"string", text}}; }
  static Json Consumes(int start, int slices) {
    Json counters;
    for (int i = start; i < start + slices; ++i) {
      counters["memory-slice-" + std::to_string(i)] = {{"value", "1"}};
    }
    return Json::array({{{"counterSet", "set"}, {"counters", counters}}});
  }
  static Json WholeGpu(const std::string& name, int numa, int slices) {
    Json gpu = {
        {"name", name},
        {"attributes",
         {{"type", Text("gpu")}, {"uuid", Text("GPU-" + name)}, {"numaNode", {{"int", numa}}}}}};
    if (slices > 0) gpu["consumesCounters"] = Consumes(0, slices);
    return gpu;
  }
  static Json Instance(int start) {
    return {
        {"name", "gpu-0-mig-1g5gb-19-" + std::to_string(start)},
        {"attributes",
         {{"type", Text("mig")}, {"profile", Text("1g.5gb")}, {"parentUUID", Text("GPU-gpu-0")}}},
        {"consumesCounters", Consumes(start, 1)}};
  }
  // A pool of one slice.
  void PutSlice(const std::string& node, const std::string& kind, const Json& devices) {
    const Json counters = Consumes(0, 8)[0]["counters"];
    const Json slice = {
        {"metadata", {{"name", node + "-" + kind}}},
        {"spec",
         {{"driver", "gpu.nvidia.com"},
          {"nodeName", node},
          {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
          {"sharedCounters", Json::array({{{"name", "set"}, {"counters", counters}}})},
          {"devices", devices}}}};
    all_.slices().Put(dialects::DecodeResourceSlice(test::Padded(slice.dump())).value());
  }
  void PutClass(const std::string& name, const Json& config = Json::array()) {
    const std::string type = name.substr(0, 3);
    const Json selector = {{"cel",
                            {{"expression",
                              "device.driver == 'gpu.nvidia.com' && "
                              "device.attributes['gpu.nvidia.com'].type == '" +
                                  type + "'"}}}};
    const Json json = {{"metadata", {{"name", name}}},
                       {"spec", {{"selectors", Json::array({selector})}, {"config", config}}}};
    std::string problem;
    all_.classes().Put(DecodeDeviceClass(test::Padded(json.dump()), problem).value());
  }
  // Nodes of four whole GPUs: two in each NUMA node.
  void PutWholeGpus() {
    for (const std::string node : {"g1", "g2"}) {
      Json devices = Json::array();
      for (int i = 0; i < 4; ++i) devices.push_back(WholeGpu("gpu-" + std::to_string(i), i / 2, 0));
      PutSlice(node, "gpus", devices);
    }
  }
  static Json WholeClaim(const std::string& name, int count) {
    Json claim = Claim(name, "");
    claim["spec"]["devices"]["requests"][0]["exactly"] = {
        {"deviceClassName", "gpu.nvidia.com"}, {"allocationMode", "ExactCount"}, {"count", count}};
    return claim;
  }
  void AddWhole(const std::string& name, int count) {
    api_.claims[name] = WholeClaim(name, count);
    Show(name);
  }
  // "g1: gpu-0 gpu-1", or "" where it has none.
  std::string DevicesOf(const std::string& name) {
    const Json& claim = api_.claims.at(name);
    const Json allocation = claim.value("status", Json::object()).value("allocation", Json());
    if (!allocation.is_object()) return "";
    std::string text;
    for (const Json& result : allocation["devices"]["results"]) {
      if (text.empty()) text = std::string(result["pool"]) + ":";
      text += " " + std::string(result["device"]);
    }
    return text;
  }

  // The watch shows the claim as it is.
  void Show(const std::string& name) {
    all_.claims().Put(
        dialects::DecodeResourceClaim(test::Padded(api_.claims.at(name).dump())).value());
  }
  void Add(const std::string& name, const std::string& profile = "1g.5gb") {
    api_.claims[name] = Claim(name, profile);
    Show(name);
  }
  bool Allocate(const std::string& name, const Names& nodes = {"n1", "n2"}) {
    return allocator_.Allocate({"uid-" + name, "ns", "pod-" + name}, Names{name}, nodes, {});
  }
  // "n1/gpu-0-..." or "" where it has none.
  std::string DeviceOf(const std::string& name) {
    const Json& claim = api_.claims.at(name);
    if (!claim.contains("status") || !claim["status"].contains("allocation")) return "";
    const Json& result = claim["status"]["allocation"]["devices"]["results"].at(0);
    return std::string(result["pool"]) + "/" + std::string(result["device"]);
  }
  // The devices of the node that claims have, or that are held for them.
  std::size_t TakenOn(const std::string& node) {
    return all_.devices().Current()->at(node)->taken.size();
  }

  FakeClaims api_;
  ClusterState state_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers devices_;
  OpenClaims open_;
  DeviceClaims all_{{state_, offers_, classes_, devices_, open_},
                    true,
                    [](std::string_view, std::string_view, const std::string&) {}};
  SimClock clock_;
  Names notes_;
  bool watch_works_ = true;
  Instant writable_until_ = Instant::max();
  DeviceAllocator allocator_{
      {.write = {.client = api_,
                 .clock = clock_,
                 .fence = *this,
                 .sleep = [this](Duration time) { clock_.Advance(time); }},
       .mig = offers_,
       .classes = classes_,
       .state = state_,
       .claims = all_,
       .on_note = [this](bool, const std::string& text) { notes_.push_back(text); }}};

 private:
  [[nodiscard]] Instant WritableUntil() const override { return writable_until_; }
};

TEST_F(DeviceAllocatorTest, AllocatesTheCheapestDeviceForThePodWithAFinalizer) {
  Add("a");
  EXPECT_TRUE(Allocate("a"));
  EXPECT_EQ(DeviceOf("a"), "n1/gpu-0-mig-1g5gb-19-4");
  const Json& claim = api_.claims.at("a");
  EXPECT_EQ(claim["metadata"]["finalizers"],
            Json::array({"resource.kubernetes.io/delete-protection"}));
  EXPECT_EQ(claim["status"]["reservedFor"],
            Json::array({{{"resource", "pods"}, {"name", "pod-a"}, {"uid", "uid-a"}}}));
  EXPECT_EQ(claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"],
            Json::array(
                {{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({"n1"})}}}));
  EXPECT_TRUE(claim["status"]["allocation"].contains("allocationTimestamp"));
  EXPECT_EQ(TakenOn("n1"), 1u);
  EXPECT_EQ(allocator_.stats().allocated, 1u);
}

TEST_F(DeviceAllocatorTest, LooksOnlyAtTheNodesThatFitThePod) {
  Add("a");
  EXPECT_TRUE(Allocate("a", {"n2", "unknown"}));
  EXPECT_EQ(DeviceOf("a"), "n2/gpu-0-mig-1g5gb-19-4");
}

TEST_F(DeviceAllocatorTest, AClaimThatHasItsDeviceIsLetThrough) {
  Add("a");
  EXPECT_TRUE(Allocate("a"));
  const std::size_t writes = api_.patches.size();
  EXPECT_FALSE(Allocate("a", {"n1"}));
  EXPECT_EQ(api_.patches.size(), writes);
  Add("b");
  EXPECT_TRUE(Allocate("b")) << "it was left to nobody";
}

TEST_F(DeviceAllocatorTest, PodsOfOneClaimHaveItsOneDevice) {
  Add("a");
  EXPECT_TRUE(allocator_.Allocate({"uid-p", "ns", "p"}, Names{"a"}, Names{"n1", "n2"}, {}));
  const std::string device = DeviceOf("a");
  const std::size_t taken = TakenOn("n1");
  // kube-scheduler has asked about the claim's node alone by then, and reserves it for the others.
  EXPECT_FALSE(allocator_.Allocate({"uid-q", "ns", "q"}, Names{"a"}, Names{"n1"}, {}));
  EXPECT_FALSE(allocator_.Allocate({"uid-r", "ns", "r"}, Names{"a"}, Names{"n2"}, {}))
      << "no device on another node in its place";
  EXPECT_EQ(DeviceOf("a"), device);
  EXPECT_EQ(TakenOn("n1"), taken);
  EXPECT_EQ(api_.claims.at("a")["status"]["reservedFor"].size(), 1u);
  EXPECT_EQ(allocator_.stats().allocated, 1u);
  EXPECT_EQ(allocator_.stats().left, 0u);
}

TEST_F(DeviceAllocatorTest, AClaimWithAPartOfAGpuKeepsItsInstancesFromOthers) {
  Json part = Claim("part", "1g.5gb");
  part["status"]["allocation"]["devices"]["results"] =
      Json::array({{{"request", "r"},
                    {"driver", "gpu.nvidia.com"},
                    {"pool", "n1"},
                    {"device", "gpu-0"},
                    {"shareID", "04f9a7e2-7c14-4b29-8d8c-8e8a57a4f0e6"},
                    {"consumedCapacity", {{"memory", "4Gi"}}}}});
  api_.claims["part"] = part;
  Show("part");
  Add("a");
  EXPECT_TRUE(Allocate("a"));
  EXPECT_EQ(DeviceOf("a").substr(0, 3), "n2/");
  Add("b");
  EXPECT_FALSE(Allocate("b", {"n1"}));
}

TEST_F(DeviceAllocatorTest, TheFinalizersOfOthersStay) {
  Add("a");
  api_.claims["a"]["metadata"]["finalizers"] = Json::array({"x/y"});
  EXPECT_TRUE(Allocate("a"));
  EXPECT_EQ(api_.claims["a"]["metadata"]["finalizers"],
            Json::array({"x/y", "resource.kubernetes.io/delete-protection"}));
  EXPECT_EQ(api_.patches.size(), 2u);
  Add("b");
  api_.claims["b"]["metadata"]["finalizers"] =
      Json::array({"resource.kubernetes.io/delete-protection"});
  EXPECT_TRUE(Allocate("b"));
  EXPECT_EQ(api_.patches.size(), 3u) << "it was there already";
}

TEST_F(DeviceAllocatorTest, ARaceThatIsLostLeavesNothingHeld) {
  Add("a");
  api_.before_patch = [this](const std::string& name, bool is_status) {
    if (is_status) api_.Touch(name);
  };
  EXPECT_FALSE(Allocate("a"));
  EXPECT_EQ(DeviceOf("a"), "");
  EXPECT_EQ(TakenOn("n1"), 0u);
  EXPECT_EQ(allocator_.stats().lost, 1u);
  EXPECT_TRUE(notes_.empty()) << "it is nobody's fault";
}

TEST_F(DeviceAllocatorTest, AWriteThatIsRefusedIsToldOnceAndLeavesNothingHeld) {
  Add("a");
  api_.fails = 403;
  EXPECT_FALSE(Allocate("a"));
  EXPECT_FALSE(Allocate("a"));
  EXPECT_EQ(TakenOn("n1"), 0u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(notes_[0].starts_with("claims cannot be allocated: ")) << notes_[0];
}

TEST_F(DeviceAllocatorTest, WithoutAnAnswerTheDeviceIsHeldUntilTheWatchTells) {
  Add("a");
  api_.claims["a"]["metadata"]["finalizers"] =
      Json::array({"resource.kubernetes.io/delete-protection"});
  api_.loses_answers = true;
  watch_works_ = false;
  EXPECT_FALSE(Allocate("a"));
  EXPECT_EQ(TakenOn("n1"), 1u) << "it may be allocated, and is";
  Show("a");
  EXPECT_EQ(TakenOn("n1"), 1u);
  api_.claims["a"].erase("status");
  Show("a");
  EXPECT_EQ(TakenOn("n1"), 0u);
}

TEST_F(DeviceAllocatorTest, WhatWasWrittenIsHeldWhileTheWatchIsBehind) {
  watch_works_ = false;
  Add("a");
  Add("b");
  const Instant before = clock_.Now();
  EXPECT_TRUE(Allocate("a"));
  EXPECT_GE(clock_.Now() - before, DeviceAllocator::kMost) << "it waits for the watch that long";
  EXPECT_TRUE(Allocate("b"));
  EXPECT_NE(DeviceOf("a"), DeviceOf("b"));
}

TEST_F(DeviceAllocatorTest, ClaimsOfOtherKindsAreLeftAloneAndToldOnce) {
  Add("a");
  api_.claims["a"]["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = true;
  EXPECT_FALSE(Allocate("a"));
  EXPECT_FALSE(Allocate("a"));
  EXPECT_TRUE(api_.patches.empty());
  EXPECT_EQ(notes_,
            Names{"a claim is left to kube-scheduler: it asks for access for administration"});
  const Names nine = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
  EXPECT_FALSE(allocator_.Allocate({"u", "ns", "p"}, nine, Names{"n1"}, {}));
  EXPECT_EQ(allocator_.stats().left, 3u);
}

TEST_F(DeviceAllocatorTest, NothingIsChosenWhileKubeSchedulerAllocatesAnotherClaim) {
  Add("of-theirs");
  api_.claims["of-theirs"]["spec"]["devices"]["requests"][0]["exactly"]["new"] = true;
  Add("a");
  EXPECT_FALSE(Allocate("of-theirs"));
  EXPECT_FALSE(Allocate("a"));
  EXPECT_EQ(DeviceOf("a"), "");
  // It has allocated both.
  for (const char* name : {"of-theirs", "a"}) {
    api_.claims[name]["status"]["allocation"]["devices"]["results"] =
        Json::array({{{"request", "gpu"}, {"driver", "x.com"}, {"pool", "n1"}, {"device", "d"}}});
    Show(name);
  }
  Add("b");
  EXPECT_TRUE(Allocate("b"));
}

TEST_F(DeviceAllocatorTest, AClaimWaitsForOneThatKubeSchedulerIsAboutToWrite) {
  Add("other");
  allocator_.Leave({"u", "ns", "p"}, Names{"other"});
  Add("a");
  clock_.Advance(milliseconds(1));
  EXPECT_FALSE(Allocate("a"));
  EXPECT_GE(clock_.Now() - Instant(), DeviceAllocator::kFresh);
  all_.claims().Remove("ns", "other");
  EXPECT_TRUE(Allocate("a")) << "one that is gone is waited for no longer";
}

// Others get its devices too, whether kube-scheduler allocates it or never does.
TEST_F(DeviceAllocatorTest, AClaimForAdministrationKeepsNobodyWaiting) {
  for (const char* name : {"watcher", "both", "read-in-part"}) Add(name);
  const auto requests = [this](const std::string& name) -> Json& {
    return api_.claims[name]["spec"]["devices"]["requests"];
  };
  requests("both").push_back(requests("both")[0]);
  for (const char* name : {"watcher", "both", "read-in-part"}) {
    requests(name)[0]["exactly"]["adminAccess"] = true;
  }
  requests("read-in-part")[0]["exactly"]["new"] = true;
  EXPECT_FALSE(Allocate("watcher"));
  Add("a");
  EXPECT_TRUE(Allocate("a"));
  for (const char* name : {"both", "read-in-part"}) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(Allocate(name));
    Add("b");
    EXPECT_FALSE(Allocate("b")) << "it may take a device of its own";
    all_.claims().Remove("ns", name);
  }
  EXPECT_FALSE(allocator_.Allocate({"u", "ns", "p"}, Names{"watcher", "b"}, Names{"n1", "n2"}, {}));
  Add("c");
  EXPECT_FALSE(Allocate("c")) << "kube-scheduler is to allocate the pod's other claim";
}

TEST_F(DeviceAllocatorTest, OneThatIsNeverAllocatedIsForgottenInTheEnd) {
  allocator_.Leave({"u", "ns", "p"}, Names{"other"});
  Add("a");
  EXPECT_FALSE(Allocate("a"));
  clock_.Advance(DeviceAllocator::kMostBinding);
  EXPECT_TRUE(Allocate("a"));
}

TEST_F(DeviceAllocatorTest, AClaimWhoseFilterTimedOutIsLeftAlone) {
  Add("a");
  Add("b");
  allocator_.Ask({"uid-a", "ns", "pod-a"}, Names{"a"});
  clock_.Advance(DeviceAllocator::kMost);
  EXPECT_FALSE(Allocate("b")) << "kube-scheduler may be allocating a by now";
  EXPECT_FALSE(Allocate("a"));
  EXPECT_TRUE(api_.patches.empty());
}

TEST_F(DeviceAllocatorTest, AClaimWhoseFilterIsStillAwaitedKeepsNobodyWaiting) {
  Add("a");
  Add("b");
  allocator_.Ask({"uid-a", "ns", "pod-a"}, Names{"a"});
  EXPECT_TRUE(Allocate("b"));
  EXPECT_TRUE(Allocate("a"));
  EXPECT_NE(DeviceOf("a"), DeviceOf("b"));
}

TEST_F(DeviceAllocatorTest, AClaimThatWasAllocatedBeforeIsUnderWayNoLonger) {
  Add("a");
  EXPECT_TRUE(Allocate("a"));
  watch_works_ = false;
  Add("c");
  api_.claims["c"]["status"] = api_.claims["a"]["status"];  // the watch has not shown it yet
  allocator_.Ask({"uid-c", "ns", "pod-c"}, Names{"c"});
  EXPECT_FALSE(Allocate("c"));
  clock_.Advance(DeviceAllocator::kMost);
  watch_works_ = true;
  Add("b");
  EXPECT_TRUE(Allocate("b"));
}

TEST_F(DeviceAllocatorTest, RememberedLeftoversAreBoundedAndTheRestIsFoundAgain) {
  for (std::size_t i = 0; i <= DeviceAllocator::kMostUnderWay; ++i) {
    allocator_.Leave({"u", "ns", "p"}, Names{"left-" + std::to_string(i)});
  }
  for (std::size_t i = 0; i < DeviceAllocator::kMostUnderWay; ++i) {
    const std::string name = "left-" + std::to_string(i);
    all_.claims().Put(
        dialects::DecodeResourceClaim(test::Padded(Claim(name, "1g.5gb").dump())).value());
  }
  Add("a");
  EXPECT_FALSE(Allocate("a"));
  for (std::size_t i = 0; i < DeviceAllocator::kMostUnderWay; ++i) {
    all_.claims().Remove("ns", "left-" + std::to_string(i));
  }
  EXPECT_FALSE(Allocate("a")) << "the last one is not known to be over";
  clock_.Advance(DeviceAllocator::kMostBinding);
  EXPECT_TRUE(Allocate("a"));
}

TEST_F(DeviceAllocatorTest, ANameThatIsNoneLeadsNowhere) {
  EXPECT_FALSE(allocator_.Allocate({"u", "ns", "p"}, Names{"../pods/x"}, Names{"n1"}, {}));
  EXPECT_FALSE(allocator_.Allocate({"u", "ns/x", "p"}, Names{"a"}, Names{"n1"}, {}));
  EXPECT_EQ(notes_, (Names{R"(claim name: want a DNS-1123 name, got "../pods/x")",
                           R"(namespace: want a DNS-1123 label, got "ns/x")"}));
}

TEST_F(DeviceAllocatorTest, NothingIsWrittenByWhoDoesNotLead) {
  Add("a");
  writable_until_ = Instant::min();
  EXPECT_FALSE(Allocate("a"));
  EXPECT_TRUE(api_.patches.empty());
  EXPECT_EQ(TakenOn("n1"), 0u);
}

TEST_F(DeviceAllocatorTest, WhereNoDeviceIsLeftKubeSchedulerSays) {
  Add("a", "7g.40gb");
  EXPECT_FALSE(Allocate("a"));
  EXPECT_EQ(allocator_.stats().left, 1u);
}

TEST_F(DeviceAllocatorTest, WholeGpusComeFromOneNumaNodeAndLeaveTheOthersTogether) {
  PutWholeGpus();
  AddWhole("one", 1);
  EXPECT_TRUE(Allocate("one", {"g1", "g2"}));
  EXPECT_EQ(DevicesOf("one"), "g1: gpu-0");
  AddWhole("two", 2);
  EXPECT_TRUE(Allocate("two", {"g1", "g2"}));
  EXPECT_EQ(DevicesOf("two"), "g1: gpu-2 gpu-3") << "kube-scheduler would take gpu-1 and gpu-2";
  AddWhole("three", 3);
  EXPECT_TRUE(Allocate("three", {"g1", "g2"}));
  EXPECT_EQ(DevicesOf("three"), "g2: gpu-0 gpu-1 gpu-2");
  AddWhole("five", 5);
  EXPECT_FALSE(Allocate("five", {"g1", "g2"}));
}

TEST_F(DeviceAllocatorTest, PartsOfGpusFillOneGpuAfterTheOther) {
  for (const std::string node : {"g1", "g2"}) {
    Json devices = Json::array();
    for (int i = 0; i < 2; ++i) {
      Json& gpu = devices.emplace_back(WholeGpu("gpu-" + std::to_string(i), 0, 0));
      gpu["allowMultipleAllocations"] = true;
      gpu["capacity"]["memory"] = {
          {"value", "80Gi"},
          {"requestPolicy",
           {{"default", "80Gi"}, {"validRange", {{"min", "1Gi"}, {"step", "1Gi"}}}}}};
    }
    PutSlice(node, "shares", devices);
  }
  const Names nodes = {"g1", "g2"};
  const auto ask = [&](const std::string& name, const std::string& memory) {
    api_.claims[name] = WholeClaim(name, 1);
    Json& exactly = api_.claims[name]["spec"]["devices"]["requests"][0]["exactly"];
    if (!memory.empty()) exactly["capacity"] = {{"requests", {{"memory", memory}}}};
    Show(name);
    return Allocate(name, nodes);
  };
  EXPECT_TRUE(ask("whole", ""));
  EXPECT_EQ(DevicesOf("whole"), "g1: gpu-0");
  watch_works_ = false;  // what is held counts
  EXPECT_TRUE(ask("a", "30Gi"));
  EXPECT_EQ(DevicesOf("a"), "g1: gpu-1");
  const Json& result = api_.claims["a"]["status"]["allocation"]["devices"]["results"][0];
  EXPECT_EQ(result["consumedCapacity"], (Json{{"memory", std::to_string(30LL << 30)}}));
  EXPECT_EQ(result["shareID"].get<std::string>().size(), 36u);
  watch_works_ = true;
  Show("a");
  EXPECT_TRUE(ask("b", "40500Mi"));
  EXPECT_EQ(DevicesOf("b"), "g1: gpu-1") << "it has 50 left, and 40 are taken";
  EXPECT_TRUE(ask("c", "11Gi"));
  EXPECT_EQ(DevicesOf("c"), "g2: gpu-0");
  EXPECT_TRUE(ask("d", "10Gi"));
  EXPECT_EQ(DevicesOf("d"), "g1: gpu-1");
  EXPECT_TRUE(ask("e", ""));
  EXPECT_EQ(DevicesOf("e"), "g2: gpu-1") << "one that does not say how much gets all of one";
  all_.claims().Remove("ns", "a");
  EXPECT_TRUE(ask("f", "30Gi"));
  EXPECT_EQ(DevicesOf("f"), "g1: gpu-1") << "what a claim had that is gone is free";
  EXPECT_FALSE(ask("g", "70Gi")) << "69 are left of one";
}

TEST_F(DeviceAllocatorTest, TheConfigurationOfClassAndClaimIsCarriedAlong) {
  PutWholeGpus();
  PutClass("gpu.nvidia.com", Json::array({{{"opaque", {{"driver", "of-class"}}}}}));
  AddWhole("a", 1);
  api_.claims["a"]["spec"]["devices"]["config"] =
      Json::array({{{"requests", {"gpu"}}, {"opaque", {{"driver", "of-claim"}}}}});
  EXPECT_TRUE(Allocate("a", {"g1"}));
  EXPECT_EQ(api_.claims["a"]["status"]["allocation"]["devices"]["config"],
            Json::array({{{"opaque", {{"driver", "of-class"}}}, {"source", "FromClass"}},
                         {{"opaque", {{"driver", "of-claim"}}}, {"source", "FromClaim"}}}));
}

TEST_F(DeviceAllocatorTest, AllClaimsOfAPodAreAllocatedOnOneNode) {
  PutWholeGpus();
  AddWhole("a", 2);
  AddWhole("b", 2);
  EXPECT_TRUE(
      allocator_.Allocate({"u", "ns", "p"}, Names{"a", "b", "a"}, Names{"n1", "g1", "g2"}, {}));
  EXPECT_EQ(DevicesOf("a"), "g1: gpu-0 gpu-1");
  EXPECT_EQ(DevicesOf("b"), "g1: gpu-2 gpu-3");
  EXPECT_EQ(TakenOn("g1"), 4u);
  AddWhole("c", 3);
  AddWhole("d", 2);
  EXPECT_FALSE(allocator_.Allocate({"u", "ns", "q"}, Names{"c", "d"}, Names{"g1", "g2"}, {}));
  EXPECT_EQ(DevicesOf("c"), "") << "not the one without the other";
}

TEST_F(DeviceAllocatorTest, ARaceLostForOneOfTwoClaimsGivesBothBack) {
  PutWholeGpus();
  AddWhole("a", 1);
  AddWhole("b", 1);
  api_.before_patch = [this](const std::string& name, bool is_status) {
    if (name == "b" && is_status) api_.Touch(name);
  };
  EXPECT_FALSE(allocator_.Allocate({"u", "ns", "p"}, Names{"a", "b"}, Names{"g1"}, {}));
  EXPECT_EQ(DevicesOf("a"), "");
  EXPECT_FALSE(api_.claims["a"]["status"].contains("reservedFor"));
  EXPECT_EQ(DevicesOf("b"), "");
  EXPECT_EQ(TakenOn("g1"), 0u);
  EXPECT_EQ(allocator_.stats().lost, 1u);
}

// kube-scheduler may give the claim other devices from then on: what Berth had written, and took
// back, does not say that it has done so.
TEST_F(DeviceAllocatorTest, AnAllocationTakenBackIsNotKubeSchedulersWhenTheWatchShowsItLate) {
  PutWholeGpus();
  for (const bool answered : {true, false}) {
    SCOPED_TRACE(answered);
    const std::string suffix = answered ? "1" : "2";
    const std::string a = "a" + suffix, b = "b" + suffix, c = "c" + suffix;
    for (const std::string& name : {a, b, c}) AddWhole(name, 1);
    std::vector<Json> shown;  // late
    api_.after_write = [&](const std::string& name) {
      if (name != a) return;
      shown.push_back(api_.claims.at(name));
      if (!answered && shown.size() == 3) api_.loses_answers = true;
    };
    api_.before_patch = [&](const std::string& name, bool is_status) {
      if (name == b && is_status) api_.Touch(name);
    };
    EXPECT_FALSE(allocator_.Allocate({"u", "ns", "p"}, Names{a, b}, Names{"g1"}, {}));
    api_.loses_answers = false;
    ASSERT_EQ(shown.size(), 3u) << "the finalizer, the allocation, and none any more";
    const auto show = [&](const Json& claim) {
      all_.claims().Put(dialects::DecodeResourceClaim(test::Padded(claim.dump())).value());
    };
    show(shown[0]);
    show(shown[1]);
    EXPECT_FALSE(all_.open().Find("ns/" + a)->allocated);
    EXPECT_FALSE(Allocate(c, {"g1"})) << "kube-scheduler may be allocating the other two";
    show(shown[2]);
    EXPECT_FALSE(Allocate(c, {"g1"}));
    clock_.Advance(DeviceAllocator::kMostBinding);  // nothing counts as under way any more
    for (const std::string& name : {a, b, c}) {
      api_.claims.erase(name);
      all_.claims().Remove("ns", name);
    }
  }
}

// The devices that it got anew are held although the watch shows those that it had.
TEST_F(DeviceAllocatorTest, WhatTheWatchShowsLateFreesNothingThatIsHeld) {
  PutWholeGpus();
  AddWhole("a", 1);
  api_.after_write = nullptr;
  ASSERT_TRUE(Allocate("a", {"g1"}));
  const Json late = api_.claims.at("a");
  // Somebody takes it back, and Berth is asked for it again.
  api_.claims.at("a")["status"] = Json::object();
  api_.Touch("a");
  ASSERT_TRUE(Allocate("a", {"g2"}));
  ASSERT_EQ(TakenOn("g2"), 1u);
  all_.claims().Put(dialects::DecodeResourceClaim(test::Padded(late.dump())).value());
  EXPECT_EQ(TakenOn("g2"), 1u);
  Show("a");
  EXPECT_EQ(TakenOn("g2"), 1u);
  EXPECT_EQ(TakenOn("g1"), 0u);
}

TEST_F(DeviceAllocatorTest, WhatCannotBeReadIsKubeSchedulers) {
  PutWholeGpus();
  AddWhole("a", 1);
  api_.claims["a"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "unknown";
  EXPECT_FALSE(Allocate("a", {"g1"}));
  clock_.Advance(DeviceAllocator::kMostBinding);  // kube-scheduler is done with it
  AddWhole("b", 1);
  api_.claims["b"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
      Json::array({{{"cel", {{"expression", "device.attributes['gpu.nvidia.com'].missing"}}}}});
  EXPECT_FALSE(Allocate("b", {"g1"}));
  EXPECT_EQ(notes_,
            (Names{"a claim is left to kube-scheduler: there is no DeviceClass unknown",
                   "a claim is left to kube-scheduler: a selector of it fails on a device"}));
  EXPECT_TRUE(api_.patches.empty());
}

TEST_F(DeviceAllocatorTest, ADeviceThatARuleTaintsGoesToClaimsThatTolerateIt) {
  PutWholeGpus();
  all_.taint_rules().Put({.namespace_name = {},
                          .name = "sick",
                          .selects = true,
                          .pool = "g1",
                          .device = "gpu-0",
                          .taint = Taint{"xid", "48", TaintEffect::kNoExecute}});
  AddWhole("four", 4);
  ASSERT_TRUE(Allocate("four", {"g1", "g2"}));
  EXPECT_EQ(DevicesOf("four").substr(0, 3), "g2:");
  AddWhole("one", 1);
  ASSERT_TRUE(Allocate("one", {"g1"}));
  EXPECT_EQ(DevicesOf("one"), "g1: gpu-1") << "it breaks into the NUMA node that is broken already";
  Json brave = WholeClaim("brave", 1);
  brave["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] =
      Json::array({{{"key", "xid"}, {"operator", "Equal"}, {"value", "48"}}});
  api_.claims["brave"] = brave;
  Show("brave");
  ASSERT_TRUE(Allocate("brave", {"g1"}));
  EXPECT_EQ(DevicesOf("brave"), "g1: gpu-0");
  all_.taint_rules().Remove("", "sick");
  EXPECT_TRUE(all_.devices().Current()->at("g1")->pools[0].slices[0]->devices[0].taints.empty());
}

TEST_F(DeviceAllocatorTest, WhileAClaimIsMadeForAPodThatAsksByNameNothingIsChosen) {
  PutWholeGpus();
  const PodId pod{"uid-x", "ns", "x"};
  allocator_.ToldByName(pod, true);
  AddWhole("a", 1);
  EXPECT_FALSE(Allocate("a", {"g1"})) << "it may get the same GPU";
  EXPECT_EQ(allocator_.stats().left, 1u);
}

TEST_F(DeviceAllocatorTest, OnceThatClaimIsThereOrThePodFitsNowhereItIsChosenAgain) {
  PutWholeGpus();
  const PodId pod{"uid-x", "ns", "x"};
  allocator_.ToldByName(pod, true);
  allocator_.ToldByName(pod, false);
  AddWhole("a", 1);
  EXPECT_TRUE(Allocate("a", {"g1"}));
  allocator_.ToldByName(pod, true);
  Json made = WholeClaim("made", 1);
  made["metadata"]["annotations"] = {{"resource.kubernetes.io/extended-resource-claim", "true"}};
  made["metadata"]["ownerReferences"] =
      Json::array({{{"kind", "Pod"}, {"name", "x"}, {"uid", "uid-x"}, {"controller", true}}});
  made["status"]["allocation"]["devices"]["results"] = Json::array(
      {{{"request", "r"}, {"driver", "gpu.nvidia.com"}, {"pool", "g1"}, {"device", "gpu-3"}}});
  api_.claims["made"] = made;
  Show("made");
  AddWhole("b", 1);
  EXPECT_TRUE(Allocate("b", {"g1"}));
  allocator_.ToldByName({"uid-y", "ns", "y"}, true);
  clock_.Advance(DeviceAllocator::kMostMaking);
  AddWhole("c", 1);
  EXPECT_TRUE(Allocate("c", {"g1"})) << "it was never made";
}

// Members of a gang: pods p0, p1, ... with claims c0, c1, ... on these nodes.
std::vector<ClaimOrder> Orders(const Names& nodes) {
  std::vector<ClaimOrder> orders;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string number = std::to_string(i);
    orders.push_back({{"uid-" + number, "ns", "p" + number}, {"c" + number}, nodes[i]});
  }
  return orders;
}

TEST_F(DeviceAllocatorTest, TheClaimsOfAGangAreAllocatedTogether) {
  PutWholeGpus();
  AddWhole("c0", 2);
  AddWhole("c1", 2);
  AddWhole("c2", 1);
  EXPECT_TRUE(allocator_.AllocateTogether(Orders({"g1", "g1", "g2"}), clock_.Now()));
  EXPECT_EQ(DevicesOf("c0"), "g1: gpu-0 gpu-1") << "each has one NUMA node";
  EXPECT_EQ(DevicesOf("c1"), "g1: gpu-2 gpu-3");
  EXPECT_EQ(DevicesOf("c2"), "g2: gpu-0");
  EXPECT_EQ(api_.claims.at("c1")["status"]["reservedFor"],
            Json::array({{{"resource", "pods"}, {"name", "p1"}, {"uid", "uid-1"}}}));
  EXPECT_EQ(allocator_.stats().allocated, 3u);
  EXPECT_EQ(TakenOn("g1"), 4u);
}

TEST_F(DeviceAllocatorTest, AMembersDevicesAreNotInTheWayOfAnothers) {
  PutWholeGpus();
  AddWhole("c0", 1);
  AddWhole("c1", 3);
  api_.claims["c1"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2;
  api_.claims["c1"]["spec"]["devices"]["constraints"] =
      Json::array({{{"matchAttribute", "gpu.nvidia.com/numaNode"}}});
  Show("c1");
  AddWhole("c2", 1);
  EXPECT_TRUE(allocator_.AllocateTogether(Orders({"g1", "g1", "g1"}), clock_.Now()));
  EXPECT_EQ(DevicesOf("c1").size(), std::string("g1: gpu-2 gpu-3").size());
}

TEST_F(DeviceAllocatorTest, NothingIsWrittenWhereOneMemberFindsNoDevices) {
  PutWholeGpus();
  for (const char* name : {"c0", "c1", "c2"}) AddWhole(name, 2);
  EXPECT_FALSE(allocator_.AllocateTogether(Orders({"g1", "g1", "g1"}), clock_.Now()));
  EXPECT_TRUE(api_.patches.empty());
  EXPECT_EQ(TakenOn("g1"), 0u);
  EXPECT_EQ(allocator_.stats().lost, 3u);
  AddWhole("later", 1);
  EXPECT_TRUE(Allocate("later", {"g1"})) << "kube-scheduler allocates none of theirs";
}

TEST_F(DeviceAllocatorTest, ALostClaimOfAGangGivesTheOthersBack) {
  PutWholeGpus();
  for (const char* name : {"c0", "c1", "c2"}) AddWhole(name, 1);
  api_.before_patch = [this](const std::string& name, bool is_status) {
    if (name == "c1" && is_status) api_.Touch("c1");
  };
  EXPECT_FALSE(allocator_.AllocateTogether(Orders({"g1", "g1", "g2"}), clock_.Now()));
  for (const char* name : {"c0", "c1", "c2"}) {
    EXPECT_EQ(DevicesOf(name), "") << name;
    Show(name);
  }
  EXPECT_EQ(TakenOn("g1"), 0u);
  EXPECT_EQ(TakenOn("g2"), 0u);
}

TEST_F(DeviceAllocatorTest, AGangOfManyMembersIsWrittenByManyAtATimeAndTakenBackWhole) {
  PutWholeGpus();
  Names nodes;
  for (int i = 0; i < 8; ++i) {
    AddWhole("c" + std::to_string(i), 1);
    nodes.push_back(i % 2 == 0 ? "g1" : "g2");
  }
  api_.before_patch = [this](const std::string& name, bool is_status) {
    if (name == "c7" && is_status) api_.Touch("c7");
  };
  EXPECT_FALSE(allocator_.AllocateTogether(Orders(nodes), clock_.Now()));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(DevicesOf("c" + std::to_string(i)), "") << i;
    Show("c" + std::to_string(i));
  }
  EXPECT_EQ(TakenOn("g1") + TakenOn("g2"), 0u);
  api_.before_patch = nullptr;
  EXPECT_TRUE(allocator_.AllocateTogether(Orders(nodes), clock_.Now()));
  EXPECT_EQ(TakenOn("g1") + TakenOn("g2"), 8u);
}

// kube-scheduler may give up waiting for it, or lose Berth: whatever it chose itself is void once
// the API server has this claim's allocation, and until then nothing else is written.
TEST_F(DeviceAllocatorTest, NothingIsWrittenBeforeTheClaimOfThePodThatIsWaitedFor) {
  PutWholeGpus();
  Names nodes, begun;
  for (int i = 0; i < 8; ++i) {
    AddWhole("c" + std::to_string(i), 1);
    nodes.push_back(i % 2 == 0 ? "g1" : "g2");
  }
  api_.before_patch = [&](const std::string& name, bool is_status) {
    if (name != "c5" && begun.empty()) {
      EXPECT_NE(DevicesOf("c5"), "") << "before anything of " << name;
    }
    if (name != "c5" && is_status) begun.push_back(name);
  };
  std::vector<ClaimOrder> orders = Orders(nodes);
  std::swap(orders[0], orders[5]);
  EXPECT_TRUE(allocator_.AllocateTogether(orders, clock_.Now()));
  EXPECT_EQ(begun.size(), 7u);
}

TEST_F(DeviceAllocatorTest, NothingIsWrittenWhereThatOneIsLost) {
  PutWholeGpus();
  for (const char* name : {"c0", "c1", "c2"}) AddWhole(name, 1);
  api_.before_patch = [this](const std::string& name, bool is_status) {
    if (name == "c0" && is_status) api_.Touch("c0");
  };
  EXPECT_FALSE(allocator_.AllocateTogether(Orders({"g1", "g1", "g2"}), clock_.Now()));
  for (const char* name : {"c1", "c2"}) {
    EXPECT_FALSE(api_.claims.at(name)["metadata"].contains("finalizers")) << name;
  }
}

TEST_F(DeviceAllocatorTest, OfOnePodTheFirstClaimIsTheFirstToBeWritten) {
  PutWholeGpus();
  Names patched;
  for (const char* name : {"b", "a", "c"}) AddWhole(name, 1);
  api_.before_patch = [&patched](const std::string& name, bool is_status) {
    if (is_status) patched.push_back(name);
  };
  EXPECT_TRUE(
      allocator_.Allocate({"uid-p", "ns", "p"}, Names{"b", "a", "b", "c"}, Names{"g1", "g2"}, {}));
  EXPECT_EQ(patched, (Names{"b", "a", "c"})) << "kube-scheduler stops at the first that it lost";
}

TEST_F(DeviceAllocatorTest, WhatAGangWaitsInAQueueCounts) {
  PutWholeGpus();
  for (const char* name : {"c0", "c1"}) AddWhole(name, 1);
  const auto orders = Orders({"g1", "g1"});
  EXPECT_FALSE(allocator_.AllocateTogether(orders, clock_.Now() - DeviceAllocator::kMost));
  EXPECT_TRUE(api_.patches.empty()) << "kube-scheduler may have given up, and chosen itself";
  clock_.Advance(DeviceAllocator::kFresh);
  EXPECT_TRUE(allocator_.AllocateTogether(orders, clock_.Now())) << "it is asked about anew";
}

}  // namespace
}  // namespace berth::dialects::device_allocator_test
