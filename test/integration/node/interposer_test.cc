// SPDX-License-Identifier: Apache-2.0
//
// The interposer between a plugin and a kubelet, over sockets, in this process.
#include "node/interposer/interposer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "node/kubelet/registrar.h"
#include "node/pods/own_pods.h"
#include "node/pods/plan_chooser.h"
#include "test/integration/node/fake_kubelet.h"
#include "test/integration/node/fake_plugin.h"
#include "test/support/eventually.h"

namespace berth::test::interposer_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using std::chrono::milliseconds;

const std::string kGpu = "nvidia.com/gpu";
const std::string kOurs = "berth-nvidia-com-gpu.sock";

class Seen final : public node::InterposerReports {
 public:
  void Carries(std::set<std::string> resources) override { Set(carries_, std::move(resources)); }
  void Unhealthy(const std::string& /*resource*/, std::set<std::string> devices) override {
    Set(unhealthy_, std::move(devices));
  }
  void NumaNodes(const std::string& /*resource*/, bool known) override { numa_known = known; }
  void PluginRegistered() override { ++registered; }

  std::set<std::string> carries() { return Get(carries_); }
  std::set<std::string> unhealthy() { return Get(unhealthy_); }
  std::atomic<int> registered = 0;
  std::atomic<bool> numa_known = false;

 private:
  void Set(std::set<std::string>& to, std::set<std::string> value) {
    const MutexLock lock(mutex_);
    to = std::move(value);
  }
  std::set<std::string> Get(const std::set<std::string>& from) {
    const MutexLock lock(mutex_);
    return from;
  }
  Mutex mutex_;
  std::set<std::string> carries_, unhealthy_;
};

std::string PodJson(const std::string& name, const std::string& containers,
                    const std::string& devices, bool bound = true) {
  std::string escaped;
  for (const char c : devices) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  return R"({"metadata":{"namespace":"default","name":")" + name + R"(","uid":"uid-)" + name +
         R"(","annotations":{)" + (bound ? R"("berth.dev/decision":"0123",)" : "") +
         R"("berth.dev/devices":")" + escaped + R"("}},"spec":{)" + containers + "}}";
}

std::string Plan(const Names& uuids, int milli = 1000) {
  std::string gpus;
  for (const std::string& uuid : uuids) {
    gpus += (gpus.empty() ? "" : ",") + std::string(R"({"index":0,"uuid":")") + uuid +
            R"(","milli":)" + std::to_string(milli) + "}";
  }
  return R"({"version":1,"node":"n1","containers":{"main":{"gpus":[)" + gpus + "]}}}";
}

std::string Main(int gpus) {
  return R"("containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":")" +
         std::to_string(gpus) + R"("}}}])";
}

class InterposerTest : public testing::Test {
 protected:
  InterposerTest() {
    std::string pattern = "/tmp/berth-node-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    kubelet_ = std::make_unique<FakeKubelet>(folder_);
    resources_ = std::make_unique<node::KubeletPodResources>(kubelet_->pod_resources());
    Begin(false);
    StartPlugin();
  }
  ~InterposerTest() override {
    End();
    plugin_.reset();
    kubelet_.reset();
    std::error_code code;
    fs::remove_all(folder_, code);
  }

  void Begin(bool lift_numa) {
    pods_ = std::make_unique<node::OwnPods>("n1", nullptr);
    pods_->ListEnds();
    chooser_ = std::make_unique<node::PlanChooser>(
        *pods_, *resources_, [] { return std::make_shared<const node::NodeFacts>(); }, log_, [] {});
    interposer_ = std::make_unique<node::Interposer>(node::InterposerOptions{folder_, lift_numa},
                                                     *chooser_, seen_, calls_, log_);
    thread_ = std::thread([this] { EXPECT_TRUE(interposer_->Run()); });
    ASSERT_TRUE(Eventually([this] { return fs::is_socket(folder_ + "/berth/run/kubelet.sock"); }));
  }
  void End() {
    if (!interposer_) return;
    interposer_->Stop();
    thread_.join();
    interposer_.reset();
  }
  void StartPlugin() {
    plugin_ = std::make_unique<FakePlugin>(folder_ + "/gpu.sock", Names{"g0", "g1", "g2", "g3"});
    // A socket is there a moment before anybody listens on it.
    ASSERT_TRUE(Eventually([this] { return RegisterPlugin().has_value(); }));
    ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
  }
  Status RegisterPlugin() {
    return plugin_->RegisterAt(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  }
  void Bind(const std::string& pod, int gpus, const std::string& devices) {
    pods_->Changed(PaddedText(PodJson(pod, Main(gpus), devices)));
  }
  Names Admit(const std::string& pod, int gpus) {
    kubelet_->AddPod(pod, {"main"});
    const auto given = kubelet_->Admit({pod, "main", kGpu, gpus, {}});
    EXPECT_TRUE(given) << given.error().message;
    return given.value_or(Names{});
  }
  // The agent begins anew, so that the plugin does; a pod whose plan is g1 comes meanwhile.
  void AdmitWhileThePluginStartsAnew() {
    plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
    End();
    Begin(false);
    ASSERT_TRUE(Eventually([this] { return kubelet_->Endpoint(kGpu) == kOurs; }));
    ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
    Bind("a", 1, Plan({"g1"}));
    EXPECT_EQ(Admit("a", 1), Names{"g1"});
  }

  std::string folder_;
  Log log_{LogLevel::kError};
  Seen seen_;
  node::CallWatch calls_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<node::KubeletPodResources> resources_;
  std::unique_ptr<node::OwnPods> pods_;
  std::unique_ptr<node::PlanChooser> chooser_;
  std::unique_ptr<node::Interposer> interposer_;
  std::unique_ptr<FakePlugin> plugin_;
  std::thread thread_;
};

TEST_F(InterposerTest, StandsInThePathAndPassesEverythingThrough) {
  EXPECT_EQ(kubelet_->Endpoint(kGpu), kOurs);
  EXPECT_TRUE(Eventually([this] { return seen_.carries() == std::set<std::string>{kGpu}; }));
  EXPECT_GE(seen_.registered, 1);
  EXPECT_TRUE(kubelet_->HasNuma(kGpu));
  EXPECT_TRUE(seen_.numa_known);
  plugin_->SetDevices({"g0", "g1"}, "g1");
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 1; }));
  EXPECT_EQ(seen_.unhealthy(), std::set<std::string>{"g1"});
}

TEST_F(InterposerTest, GivesWhatIsPlanned) {
  Bind("a", 2, Plan({"g1", "g2"}));
  EXPECT_EQ(Admit("a", 2), (Names{"g1", "g2"}));
  EXPECT_EQ(plugin_->preferences, 0);
  EXPECT_EQ(plugin_->allocations, 1);
}

TEST_F(InterposerTest, DoesNotAskTheKubeletWhereOnePodIsMeant) {
  kubelet_->lists_fail = true;
  Bind("a", 1, Plan({"g1"}));
  EXPECT_EQ(Admit("a", 1), Names{"g1"});
  EXPECT_EQ(kubelet_->lists, 0);
  Bind("b", 1, Plan({"g2"}));
  Bind("c", 1, Plan({"g3"}));
  kubelet_->lists_fail = false;
  EXPECT_EQ(Admit("c", 1), Names{"g3"});  // of two the list says which
  EXPECT_EQ(kubelet_->lists, 1);
  EXPECT_EQ(Admit("b", 1), Names{"g2"});
  EXPECT_EQ(kubelet_->lists, 1);
}

TEST_F(InterposerTest, WaitsForTheWatchWhereTheKubeletIsFaster) {
  std::thread later([this] {
    std::this_thread::sleep_for(milliseconds(100));
    Bind("a", 1, Plan({"g0"}));
  });
  EXPECT_EQ(Admit("a", 1), Names{"g0"});
  later.join();
}

TEST_F(InterposerTest, AsksThePluginForPodsWithoutAPlanAroundThoseOfOthers) {
  Bind("planned", 1, Plan({"g3"}));
  pods_->Changed(PaddedText(PodJson("past", Main(1), "")));
  EXPECT_EQ(Admit("past", 1), Names{"g2"});  // the plugin would prefer g3
  EXPECT_EQ(Admit("planned", 1), Names{"g3"});
}

// It has its own nodeName: who may create pods may write any plan.
TEST_F(InterposerTest, AForgedPlanTakesNoGpuThatIsPlannedForAPodOfBerth) {
  Bind("planned", 1, Plan({"g3"}));
  pods_->Changed(PaddedText(PodJson("past", Main(1), Plan({"g3"}), false)));
  EXPECT_EQ(Admit("past", 1), Names{"g2"});
  EXPECT_EQ(Admit("planned", 1), Names{"g3"});
}

TEST_F(InterposerTest, KeepsWholeGpuPodsOffGpusWithShares) {
  pods_->Changed(PaddedText(PodJson("share", R"("containers":[])", Plan({"g3"}, 500))));
  pods_->Changed(PaddedText(PodJson("past", Main(1), "")));
  EXPECT_EQ(Admit("past", 1), Names{"g2"});
  pods_->Changed(PaddedText(PodJson("large", Main(3), "")));  // there are not enough others
  EXPECT_EQ(Admit("large", 3).size(), 3U);
}

TEST_F(InterposerTest, APlanThatCannotBeHadIsFilledUp) {
  Bind("first", 1, Plan({"g1"}));
  EXPECT_EQ(Admit("first", 1), Names{"g1"});
  Bind("second", 2, Plan({"g1", "g2"}));
  const Names given = Admit("second", 2);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0], "g2");
}

TEST_F(InterposerTest, APluginThatLiesOrHangsIsNotWaitedForLong) {
  pods_->Changed(PaddedText(PodJson("past", Main(2), "")));
  plugin_->lies_in_preference = true;
  EXPECT_EQ(Admit("past", 2), (Names{"g0", "g1"}));
  plugin_->hangs_in_preference = true;
  pods_->Changed(PaddedText(PodJson("other", Main(1), "")));
  EXPECT_EQ(Admit("other", 1).size(), 1U);
  EXPECT_TRUE(Eventually([this] { return plugin_->given_up == 1; }));
  plugin_->hangs_in_preference = false;
}

TEST_F(InterposerTest, WithoutTheKubeletsListItGoesByTheWatch) {
  kubelet_->lists_fail = true;
  Bind("a", 1, Plan({"g1"}));
  EXPECT_EQ(Admit("a", 1), Names{"g1"});
}

TEST_F(InterposerTest, AnErrorOfThePluginIsThePods) {
  plugin_->fails_in_allocate = true;
  kubelet_->AddPod("a", {"main"});
  const auto given = kubelet_->Admit({"a", "main", kGpu, 1, {}});
  ASSERT_FALSE(given);
  EXPECT_NE(given.error().message.find("no such GPU"), std::string::npos);
}

TEST_F(InterposerTest, InitContainersAndWhatMustBe) {
  pods_->Changed(PaddedText(PodJson(
      "a",
      R"("initContainers":[{"name":"init","resources":{"limits":{"nvidia.com/gpu":"1"}}}],)" +
          Main(2),
      Plan({"g1", "g2"}))));
  kubelet_->AddPod("a", {"main"});
  const auto init = kubelet_->Admit({"a", "init", kGpu, 1, {}, false});
  ASSERT_TRUE(init);
  EXPECT_EQ(*init, Names{"g1"});
  const auto rest = kubelet_->Admit({"a", "main", kGpu, 2, *init});
  ASSERT_TRUE(rest);
  EXPECT_EQ(*rest, (Names{"g1", "g2"}));
}

TEST_F(InterposerTest, APluginThatStartsAnewQuicklyIsNotMissed) {
  const int before = kubelet_->Registrations(kGpu);
  plugin_.reset();
  StartPlugin();
  EXPECT_EQ(kubelet_->Registrations(kGpu), before);
  EXPECT_EQ(kubelet_->Endpoint(kGpu), kOurs);
  EXPECT_EQ(Admit("a", 1).size(), 1U);
}

TEST_F(InterposerTest, APluginThatStaysAwayHasNoHealthyDevices) {
  plugin_.reset();
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 0; }));
  EXPECT_TRUE(Eventually([this] { return seen_.carries().empty(); }));
  StartPlugin();
  EXPECT_TRUE(Eventually([this] { return !seen_.carries().empty(); }));
}

TEST_F(InterposerTest, AKubeletThatStartsAnewIsRegisteredWith) {
  kubelet_->Restart();
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
  EXPECT_EQ(kubelet_->Endpoint(kGpu), kOurs);
}

TEST_F(InterposerTest, AWorkerTakesOverFromTheOneBefore) {
  End();
  EXPECT_EQ(node::ReadPlugins(folder_ + "/berth/run/plugins").size(), 1U);
  Begin(true);
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
  EXPECT_EQ(kubelet_->Endpoint(kGpu), kOurs);
  EXPECT_FALSE(kubelet_->HasNuma(kGpu));
  EXPECT_FALSE(seen_.numa_known);
}

TEST_F(InterposerTest, AKubeletThatKeepsBothMissesNothingWhereTheAgentEnds) {
  kubelet_->keeps_both = true;
  interposer_->KubeletKeepsBoth(*resources_);
  const std::string second = "berth-nvidia-com-gpu-1.sock";
  ASSERT_TRUE(Eventually([&] { return kubelet_->Endpoint(kGpu) == second; }));
  EXPECT_EQ(kubelet_->Registrations(kGpu), 3);  // ours, the plugin's own, ours again
  Bind("a", 1, Plan({"g1"}));
  EXPECT_EQ(Admit("a", 1), Names{"g1"});
  End();
  ASSERT_TRUE(Eventually([&] { return kubelet_->Endpoint(kGpu).starts_with("berth/run/back-"); }));
  EXPECT_EQ(kubelet_->Allocatable(kGpu), 4U);
  EXPECT_EQ(Admit("past", 1), Names{"g3"});  // as the plugin prefers
  Begin(false);
  interposer_->KubeletKeepsBoth(*resources_);
  ASSERT_TRUE(Eventually([this] { return kubelet_->Endpoint(kGpu) == kOurs; }));
  Bind("b", 1, Plan({"g0"}));
  EXPECT_EQ(Admit("b", 1), Names{"g0"});
  EXPECT_EQ(kubelet_->Registrations(kGpu), 4);  // the plugin's own lasts
}

// Where one ends this kubelet asks the oldest of the others, which is the worst that a real one may
// do.
TEST_F(InterposerTest, ThePluginIsAskedUntilWeHaveConnectedAndNoLonger) {
  kubelet_->keeps_both = true;
  interposer_->KubeletKeepsBoth(*resources_);
  ASSERT_TRUE(
      Eventually([this] { return kubelet_->Endpoint(kGpu) == "berth-nvidia-com-gpu-1.sock"; }));
  for (const char* next : {"berth-nvidia-com-gpu-2.sock", "berth-nvidia-com-gpu-3.sock"}) {
    plugin_.reset();
    StartPlugin();
    ASSERT_TRUE(Eventually([&] { return kubelet_->Endpoint(kGpu) == next; })) << next;
    EXPECT_EQ(kubelet_->Allocatable(kGpu), 4U);
  }
  const Names asked = kubelet_->Asked(kGpu);
  int plugins = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i].starts_with("berth/run/back-")) continue;
    ++plugins;
    ASSERT_LT(i + 1, asked.size());
    EXPECT_FALSE(asked[i + 1].starts_with("berth/run/back-")) << "it was asked after an end too";
  }
  EXPECT_EQ(plugins, 3);
}

TEST_F(InterposerTest, LearnsFromTheKubeletWhatThePluginSaidToItAlone) {
  kubelet_->keeps_both = true;
  interposer_->KubeletKeepsBoth(*resources_);
  ASSERT_TRUE(
      Eventually([this] { return kubelet_->Endpoint(kGpu) == "berth-nvidia-com-gpu-1.sock"; }));
  ASSERT_TRUE(Eventually([this] { return kubelet_->IsTold(kGpu); }));
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(2); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g1");  // the agent hears of it, which came first
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(2); }));
  // Of two lists the kubelet takes that which comes last: the agent's has to be there.
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g2");  // and the kubelet of this
  EXPECT_TRUE(Eventually([this] { return seen_.unhealthy() == std::set<std::string>{"g2"}; }));
}

// NVIDIA's plugin keeps a reader for each of them, which swallows a change.
TEST_F(InterposerTest, WorkersThatWentSwallowNoChangeOfHealth) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  for (int round = 1; round <= 3; ++round) {
    End();
    Begin(false);
    ASSERT_TRUE(Eventually([&] { return plugin_->restarts == round; }));
  }
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(1); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g2");
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  EXPECT_EQ(seen_.unhealthy(), std::set<std::string>{"g2"});
}

TEST_F(InterposerTest, AKubeletThatKeepsBothMissesNothingWhereThePluginStartsAnewForUs) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  kubelet_->keeps_both = true;
  interposer_->KubeletKeepsBoth(*resources_);
  ASSERT_TRUE(
      Eventually([this] { return kubelet_->Endpoint(kGpu) == "berth-nvidia-com-gpu-1.sock"; }));
  const int before = kubelet_->Registrations(kGpu);
  End();
  Begin(false);
  interposer_->KubeletKeepsBoth(*resources_);
  bool missed = false;
  ASSERT_TRUE(Eventually([&] {
    missed = missed || kubelet_->Allocatable(kGpu) < 4;
    // Ours, the plugin's own once it has started anew, and ours again.
    return plugin_->restarts == 1 && kubelet_->Registrations(kGpu) == before + 3;
  }));
  EXPECT_FALSE(missed);
  EXPECT_TRUE(Eventually([this] { return plugin_->AllWait(2); }));
}

TEST_F(InterposerTest, APluginThatRegistersTwiceHasOneReader) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(RegisterPlugin());
  EXPECT_TRUE(Eventually([this] { return plugin_->AllWait(1); }));
}

TEST_F(InterposerTest, WhatAPluginForgetsThatStartsAnewForUsIsHeldUntilItStartsByItself) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g2");
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  for (int round = 1; round <= 2; ++round) {  // the second worker knows it by the file alone
    End();
    Begin(false);
    ASSERT_TRUE(Eventually([&] { return plugin_->restarts == round; }));
    ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(1); }));
    EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
    EXPECT_EQ(seen_.unhealthy(), std::set<std::string>{"g2"});
  }
  // Nobody makes the socket anew: somebody has started it.
  plugin_.reset();
  End();
  plugin_ = std::make_unique<FakePlugin>(folder_ + "/gpu.sock", Names{"g0", "g1", "g2", "g3"});
  Begin(false);
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
  EXPECT_TRUE(seen_.unhealthy().empty());
}

TEST_F(InterposerTest, HoldsAtMost64DevicesOfAPlugin) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  Names many;
  for (int i = 0; i < 100; ++i) many.push_back("g" + std::to_string(i));
  plugin_->SetDevices(many, FakePlugin::kAll);
  ASSERT_TRUE(Eventually([this] { return seen_.unhealthy().size() == 100; }));
  End();
  Begin(false);
  ASSERT_TRUE(Eventually([this] { return plugin_->restarts == 1 && plugin_->AllWait(1); }));
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 36; }));
}

TEST_F(InterposerTest, ADeviceThatIsHeldGoesByThePluginsWordOnceItSaysSomething) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g2");
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  End();
  Begin(false);
  ASSERT_TRUE(Eventually([this] { return plugin_->restarts == 1 && plugin_->AllWait(1); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g2");
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(1); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"});
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
}

TEST_F(InterposerTest, WhileAPluginStartsAnewForUsItsDevicesAreNotMissedAndPodsWait) {
  plugin_->is_slow_to_start = true;
  AdmitWhileThePluginStartsAnew();
  ASSERT_TRUE(Eventually([this] { return plugin_->restarts == 1; }));
  EXPECT_EQ(kubelet_->Allocatable(kGpu), 4U);
}

TEST_F(InterposerTest, APodWhosePluginStartsAnewForUsWhileItAnswersGetsItsDevices) {
  plugin_->stops_in_allocate = true;
  AdmitWhileThePluginStartsAnew();
  EXPECT_EQ(plugin_->allocations, 2);
}

// As after a power cut: it found nobody, and waits.
TEST_F(InterposerTest, APluginThatWaitsIsToldThatTheAgentIsThere) {
  End();
  plugin_.reset();
  fs::remove(folder_ + "/berth/run/plugins");
  plugin_ = std::make_unique<FakePlugin>(folder_ + "/gpu.sock", Names{"g0", "g1", "g2", "g3"});
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  Begin(false);
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
}

// As after an update with maxSurge: the first one removed the socket of the second.
TEST_F(InterposerTest, APluginWhoseSocketHasGoneIsToldToMakeAnotherOne) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  End();
  fs::remove(folder_ + "/gpu.sock");
  Begin(false);
  EXPECT_TRUE(Eventually([this] { return kubelet_->Endpoint(kGpu) == kOurs; }));
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
}

TEST_F(InterposerTest, TheFileOfPluginsIsTriedAgainThatCouldNotBeWritten) {
  const std::string file = folder_ + "/berth/run/plugins";
  End();
  plugin_.reset();
  fs::remove(file);
  fs::create_directories(file + ".new/full");
  Begin(false);
  StartPlugin();
  EXPECT_FALSE(fs::exists(file));
  fs::remove_all(file + ".new");
  ASSERT_TRUE(Eventually([&] { return node::ReadPlugins(file).size() == 1; }));
}

TEST(PluginFile, KeepsWhatIsSickBesideThePluginsLine) {
  const node::PluginAddress plugin = {kGpu, "gpu.sock", {true, true}, "1-2", "3:g1,g2"};
  const node::PluginAddress other = {"a.com/b", "b.sock", {}, "", ""};
  const std::string text = node::PluginsText({plugin, other});
  EXPECT_EQ(node::ParsePlugins(text), (std::vector{plugin, other})) << text;
  EXPECT_TRUE(node::ParsePlugins("sick nvidia.com/gpu 3:g1\n").empty());
}

TEST_F(InterposerTest, ADeviceThatIsClosedIsUnhealthyForTheKubeletUntilItIsOpen) {
  interposer_->Close({{kGpu, {"g1"}}, {"a.com/other", {"g2"}}});
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  EXPECT_EQ(seen_.unhealthy(), std::set<std::string>{"g1"});
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g0");
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 2; }));
  interposer_->Close({});
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  EXPECT_EQ(seen_.unhealthy(), std::set<std::string>{"g0"});
}

// A kubelet that has the plugin beside us goes by who spoke last.
TEST_F(InterposerTest, AKubeletThatThePluginTellsOtherwiseIsToldAgainWhatIsClosed) {
  kubelet_->keeps_both = true;
  interposer_->KubeletKeepsBoth(*resources_);
  ASSERT_TRUE(
      Eventually([this] { return kubelet_->Endpoint(kGpu) == "berth-nvidia-com-gpu-1.sock"; }));
  interposer_->Close({{kGpu, {"g1"}}});
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(2); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"}, "g0");  // we hear of it, and tell the kubelet
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 2; }));
  ASSERT_TRUE(Eventually([this] { return plugin_->AllWait(2); }));
  plugin_->SetDevices({"g0", "g1", "g2", "g3"});  // the kubelet does
  ASSERT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 4; }));
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 3; }));
}

TEST_F(InterposerTest, RefusesNamesThatAreNone) {
  const auto problem = [this](const std::string& resource, const std::string& endpoint) {
    const Status status = plugin_->RegisterAt(folder_ + "/berth/kubelet.sock", resource, endpoint);
    return status ? "" : status.error().message;
  };
  EXPECT_NE(problem("gpu", "gpu.sock").find("resource_name: want"), std::string::npos);
  EXPECT_NE(problem(kGpu, "../gpu.sock").find("endpoint: want"), std::string::npos);
  EXPECT_NE(problem(kGpu, "nobody.sock").find("no connection"), std::string::npos);
  EXPECT_EQ(kubelet_->Allocatable(kGpu), 4U);
}

TEST_F(InterposerTest, AThousandRegistrationsAndTenThousandDevices) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(RegisterPlugin());
  }
  Names many;
  for (int i = 0; i < 10'000; ++i) many.push_back("g" + std::to_string(i % 5000));  // twice each
  plugin_->SetDevices(many);
  EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 10'000; }));
  Bind("a", 2, Plan({"g17", "g4000"}));
  EXPECT_EQ(Admit("a", 2), (Names{"g17", "g4000"}));
}

TEST_F(InterposerTest, MoreResourcesThanItCarriesAreTheKubeletsAlone) {
  std::vector<std::unique_ptr<FakePlugin>> plugins;
  for (std::size_t i = 0; i < node::kMostResources; ++i) {
    const std::string name = "r" + std::to_string(i);
    plugins.push_back(std::make_unique<FakePlugin>(folder_ + "/" + name + ".sock", Names{"x"}));
    ASSERT_TRUE(plugins.back()->RegisterAt(folder_ + "/berth/kubelet.sock", "a.com/" + name,
                                           name + ".sock"));
  }
  const std::string last = "a.com/r" + std::to_string(node::kMostResources - 1);
  EXPECT_TRUE(Eventually([&] { return kubelet_->Allocatable(last) == 1; }));
  EXPECT_EQ(kubelet_->Endpoint(last), "r" + std::to_string(node::kMostResources - 1) + ".sock");
  EXPECT_TRUE(Eventually([&] { return kubelet_->Endpoint("a.com/r0") == "berth-a-com-r0.sock"; }));
}

}  // namespace
}  // namespace berth::test::interposer_test
