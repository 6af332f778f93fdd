// SPDX-License-Identifier: Apache-2.0
//
// berth-node as a process, its worker killed and stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "node/guard/guard.h"
#include "test/integration/node/fake_kubelet.h"
#include "test/integration/node/fake_plugin.h"
#include "test/support/child_process.h"
#include "test/support/eventually.h"

namespace berth::test::guard_test {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using Millis = std::chrono::milliseconds;

const std::string kGpu = "nvidia.com/gpu";
const std::string kOurs = "berth-nvidia-com-gpu";  // and a number

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    std::string pattern = "/tmp/berth-node-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    kubelet_ = std::make_unique<FakeKubelet>(folder_);
    plugin_ = std::make_unique<FakePlugin>(folder_ + "/gpu.sock", Names{"g0", "g1"});
    Start();
    EXPECT_TRUE(Eventually([this] { return fs::is_socket(folder_ + "/berth/run/kubelet.sock"); }));
    // A plugin that is refused comes again.
    Status accepted = Invalid("not asked");
    EXPECT_TRUE(Eventually([&] {
      accepted = plugin_->RegisterAt(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
      return accepted.has_value();
    })) << accepted.error().message;
    EXPECT_TRUE(Eventually([this] { return ServedBy(kOurs); }));
  }
  ~GuardTest() override {
    if (HasFailure()) std::printf("%s\n", agent_->err().c_str());
    agent_.reset();
    plugin_.reset();
    kubelet_.reset();
    std::error_code code;
    fs::remove_all(folder_, code);
  }

  void Start() {
    agent_ = std::make_unique<ChildProcess>(
        "berth-node",
        std::vector<std::string>{"--dir", folder_, "--pod-resources", kubelet_->pod_resources()});
    ASSERT_TRUE(agent_->AwaitErr("worker_started"));
  }
  bool ServedBy(const std::string& endpoint) {
    return kubelet_->Endpoint(kGpu).starts_with(endpoint) && kubelet_->Allocatable(kGpu) == 2;
  }
  // Of the worker that was started last.
  [[nodiscard]] pid_t Worker() const {
    const std::string& log = agent_->err();
    const std::size_t at = log.rfind("\"pid\":", log.rfind("worker_started") + 40);
    return std::atoi(log.c_str() + at + 6);
  }
  // Until the plugin serves the kubelet by itself.
  Millis UntilHandedBack() {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(Eventually([this] {  // a new worker may come at once
      const Names asked = kubelet_->Asked(kGpu);
      while (seen_ < asked.size() && !asked[seen_].starts_with("berth/run/back-")) ++seen_;
      if (seen_ == asked.size()) return false;
      back_ = asked[seen_++];
      return true;
    }));
    const auto took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - began);
    EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 2; }));
    return took;
  }

  std::string folder_;
  std::string back_;      // the name under which the plugin was handed back
  std::size_t seen_ = 0;  // of those that the kubelet asked
  std::unique_ptr<FakeKubelet> kubelet_;
  std::unique_ptr<FakePlugin> plugin_;
  std::unique_ptr<ChildProcess> agent_;
};

// Generous limits: the machine of the tests is slow and busy. The times are printed.
constexpr Millis kMost(2000);

TEST_F(GuardTest, AWorkerThatIsKilledIsReplacedByThePluginAndThenByANewOne) {
  ASSERT_EQ(kill(Worker(), SIGKILL), 0);
  const Millis took = UntilHandedBack();
  std::printf("handed back %ld ms after SIGKILL\n", static_cast<long>(took.count()));
  EXPECT_LT(took, kMost);
  EXPECT_TRUE(Eventually([this] { return ServedBy(kOurs); }));
}

// A kubelet of 1.37 refuses a name that it knows, and no longer sees the end of who has it.
TEST_F(GuardTest, EveryHandBackIsUnderANewName) {
  ASSERT_EQ(kill(Worker(), SIGKILL), 0);
  UntilHandedBack();
  const std::string first = back_;
  EXPECT_TRUE(Eventually([this] { return ServedBy(kOurs); }));
  agent_->Signal(SIGTERM);
  UntilHandedBack();
  EXPECT_NE(back_, first);
  EXPECT_EQ(agent_->Wait(), 0);
  EXPECT_EQ(fs::read_symlink(folder_ + "/" + back_), "../../gpu.sock");
  EXPECT_FALSE(fs::exists(folder_ + "/" + first));
}

// For the same reason a new worker takes no name that the one before may have.
TEST_F(GuardTest, EachWorkerServesUnderAnotherName) {
  const std::string first = kubelet_->Endpoint(kGpu);
  ASSERT_EQ(kill(Worker(), SIGKILL), 0);
  UntilHandedBack();
  EXPECT_TRUE(Eventually([this] { return ServedBy(kOurs); }));
  EXPECT_NE(kubelet_->Endpoint(kGpu), first);
  EXPECT_FALSE(fs::exists(folder_ + "/" + first));
}

TEST_F(GuardTest, AWorkerThatIsStoppedIsKilled) {
  const pid_t worker = Worker();
  ASSERT_EQ(kill(worker, SIGSTOP), 0);
  const Millis took = UntilHandedBack();
  std::printf("handed back %ld ms after SIGSTOP\n", static_cast<long>(took.count()));
  EXPECT_LT(took, kMost);
  EXPECT_NE(kill(worker, 0), 0);
}

TEST_F(GuardTest, ItHandsBackWhenItIsToEnd) {
  agent_->Signal(SIGTERM);
  EXPECT_LT(UntilHandedBack(), kMost);
  EXPECT_EQ(agent_->Wait(), 0);
  EXPECT_NE(agent_->err().find("\"devices\":2"), std::string::npos) << agent_->err();
  // A plugin that starts now finds the kubelet.
  plugin_.reset();
  plugin_ = std::make_unique<FakePlugin>(folder_ + "/gpu.sock", Names{"g0", "g1"});
  EXPECT_TRUE(plugin_->RegisterAt(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock"));
  EXPECT_TRUE(Eventually([this] { return ServedBy("gpu.sock"); }));
}

TEST_F(GuardTest, ANewAgentWaitsForTheOldOneAndTakesOver) {
  std::unique_ptr<ChildProcess> old = std::move(agent_);
  agent_ = std::make_unique<ChildProcess>(
      "berth-node",
      std::vector<std::string>{"--dir", folder_, "--pod-resources", kubelet_->pod_resources()});
  ASSERT_TRUE(agent_->AwaitErr("waits_for_other_agent"));
  old->Signal(SIGTERM);
  EXPECT_EQ(old->Wait(), 0);
  ASSERT_TRUE(agent_->AwaitErr("worker_started"));
  EXPECT_TRUE(Eventually([this] { return ServedBy(kOurs); }));
}

TEST_F(GuardTest, NoChangeOfHealthIsLostWhereWorkersAreKilledAndAgentsReplaced) {
  plugin_->Follow(folder_ + "/berth/kubelet.sock", kGpu, "gpu.sock");
  for (int round = 1; round <= 4; ++round) {
    if (round % 2 == 0) {
      agent_->Signal(SIGTERM);
      EXPECT_EQ(agent_->Wait(), 0);
      Start();
    } else {
      ASSERT_EQ(kill(Worker(), SIGKILL), 0);
    }
    ASSERT_TRUE(Eventually([&] { return plugin_->restarts == round; }));
    ASSERT_TRUE(Eventually([this] { return ServedBy(kOurs) && plugin_->AllWait(1); }));
    plugin_->SetDevices({"g0", "g1"}, "g1");
    EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 1; })) << round;
    plugin_->SetDevices({"g0", "g1"});
    EXPECT_TRUE(Eventually([this] { return kubelet_->Allocatable(kGpu) == 2; })) << round;
  }
}

TEST(StateLetter, IsFoundBehindAnyName) {
  EXPECT_EQ(node::StateLetter("12 (berth-node) S 1 2"), 'S');
  EXPECT_EQ(node::StateLetter("12 (a) R (b) T 1 2"), 'T');
  EXPECT_EQ(node::StateLetter("12 (a"), '\0');
  EXPECT_EQ(node::StateLetter(""), '\0');
}

TEST(StateOf, SaysWhetherAProcessIsThere) {
  EXPECT_EQ(node::StateOf(getpid()), node::ProcessState::kBusy);
  EXPECT_EQ(node::StateOf(2'000'000'000), node::ProcessState::kGone);
}

}  // namespace
}  // namespace berth::test::guard_test
