// SPDX-License-Identifier: Apache-2.0
//
// The fault run: ten thousand binds while the API server answers 429, 500 and 409, lets requests
// and answers get lost, and sends watch events twice and out of order. Watches break and pods are
// listed anew all the time, and many binds are held until that has happened: before the Binding is
// carried out, or before its answer comes. What must hold all the time: no GPU is granted twice, no
// pod is reported bound that is not, and in the end nothing is reserved.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/state/audit.h"
#include "config/config.h"
#include "config/load.h"
#include "scoring/registry.h"
#include "server/extender/extender.h"
#include "server/kube/check/api_audit.h"
#include "server/kube/watch/cluster_sync.h"
#include "server/kube/watch/reflector.h"
#include "server/kube/write/pod_writes.h"
#include "test/support/bind_now.h"
#include "test/support/dialects.h"
#include "test/support/fake_api_server.h"

namespace berth::test::fault_run_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Json = nlohmann::json;

constexpr int kNodeCount = 100;
constexpr int kGpusPerNode = 8;  // with UUIDs: shares are given of them
constexpr int kThreads = 8;
const std::string kNodes = "/api/v1/nodes";
const std::string kPods = "/api/v1/pods";

int PodCount() {
  const char* const asked = std::getenv("BERTH_FAULT_RUN_PODS");
  return asked == nullptr ? 10'000 : std::atoi(asked);
}

class SilentSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

// Time that can be made to pass.
class PushedClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override {
    return std::chrono::steady_clock::now() + pushed_.load();
  }
  [[nodiscard]] WallTime Wall() const override { return std::chrono::system_clock::now(); }
  void Push(Duration by) { pushed_ = pushed_.load() + by; }

 private:
  std::atomic<Duration> pushed_{Duration(0)};
};

class AlwaysWritable final : public kube::WriteFence {
 public:
  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }
};

class FaultRun : public testing::Test {
 protected:
  FaultRun() {
    for (int i = 0; i < kNodeCount; ++i) {
      Json node = FakeNode("n" + std::to_string(i), kGpusPerNode);
      node["metadata"]["annotations"]["berth.dev/gpu-uuids"] = "0,1,2,3,4,5,6,7";
      api_.Put(kNodes, node);
    }
    api_.fault = [this](const kube::ApiRequest& request) { return FaultFor(request); };
    api_.before_answer = [this](const kube::ApiRequest& request) {
      if (request.method == "POST") MaybeHoldAcrossAList();
    };
    api_.disturb = [this](std::vector<std::string> lines) { return Disturbed(std::move(lines)); };
    nodes_ = Watch(kNodes, node_sink_);
    pods_ = Watch(kPods, pod_sink_);
    while (!nodes_->stats().synced || !pods_->stats().synced) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  std::unique_ptr<kube::Reflector> Watch(const std::string& path, kube::ObjectSink& sink) {
    kube::ReflectorOptions options;
    options.path = path;
    options.first_pause = milliseconds(1);
    options.longest_pause = milliseconds(20);
    return std::make_unique<kube::Reflector>(api_, sink, clock_, options);
  }

  // Every tenth time returns when pods have been listed anew meanwhile, however long that takes
  // here: the cutter breaks watches for as long as there are binds.
  void MaybeHoldAcrossAList() {
    if (calm_ || pods_ == nullptr) return;
    {
      const std::lock_guard lock(random_mutex_);
      if (random_.Below(10) != 0) return;
    }
    const std::uint64_t lists = pods_->stats().lists;
    for (int i = 0; i < 10'000 && pods_->stats().lists == lists; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (pods_->stats().lists != lists) ++held_across_lists_;
  }

  Fault FaultFor(const kube::ApiRequest& request) {
    if (request.method == "POST") MaybeHoldAcrossAList();
    if (calm_) return Fault::kNone;
    const std::lock_guard lock(random_mutex_);
    const int percent = static_cast<int>(random_.Below(100));
    if (request.method != "POST") return percent < 10 ? Fault::kInternal : Fault::kNone;
    if (percent < 5) return Fault::kTooMany;
    if (percent < 10) return Fault::kInternal;
    if (percent < 13) return Fault::kConflict;
    if (percent < 17) return Fault::kNeverCame;
    if (percent < 22) return Fault::kLostAnswer;
    if (percent < 25) return Fault::kForbidden;
    return Fault::kNone;
  }

  // Some events twice, some behind their successor, now and then a broken watch.
  std::vector<std::string> Disturbed(std::vector<std::string> lines) {
    const std::lock_guard lock(random_mutex_);
    std::vector<std::string> out;
    for (std::string& line : lines) {
      if (random_.Below(10) == 0) out.push_back(line);
      out.push_back(std::move(line));
      if (out.size() > 1 && random_.Below(10) == 0) std::swap(out.back(), out[out.size() - 2]);
    }
    return out;
  }

  // What kube-scheduler does with one pod, until it is bound or 50 attempts have failed.
  bool Schedule(const std::string& name, Random& random) {
    const PodRequest pod = RequestOf(name);
    for (int attempt = 0; attempt < 50; ++attempt) {
      const Extender::Moment now = extender_.Now();
      const auto& snapshot = now.snapshot;
      std::vector<NodeIndex> all(snapshot->size()), fitting;
      for (NodeIndex i = 0; i < all.size(); ++i) all[i] = i;
      const std::vector<Reason> reasons = extender_.Filter(now, pod, all).reasons;
      for (const NodeIndex i : all) {
        if (reasons[i] == Reason::kFits) fitting.push_back(i);
      }
      if (!fitting.empty()) {
        const std::string node(snapshot->names().name(fitting[random.Below(fitting.size())]));
        const bool said = BindNow(extender_, {"ns", name, "uid-" + name, node}).has_value();
        const Json there = api_.Get(kPods, "ns/" + name)["spec"];
        if (said && there.value("nodeName", "") != node) ++lies_;
        if (there.contains("nodeName")) return true;  // its informer would show it
      }
      std::this_thread::sleep_for(milliseconds(fitting.empty() ? 5 : 0));
    }
    return false;
  }

  PodRequest RequestOf(const std::string& name) {
    Json json = api_.Get(kPods, "ns/" + name);
    return wire::DecodeObservedPod(PaddedText(json.dump()), pod_rules_)->pod;
  }

  void Work(int worker, int pods) {
    Random random(static_cast<std::uint64_t>(worker) + 1);
    for (int i = worker; i < pods; i += kThreads) {
      const std::string name = "p" + std::to_string(i);
      api_.Put(kPods, FakePod(name, random.Below(2) == 0 ? Json{{"nvidia.com/gpu", "1"}}
                                                         : Json{{"berth.dev/gpu-milli", "300"}}));
      if (Schedule(name, random)) ++bound_;
      // Pods leave again, or the cluster would be full soon: at most 60 of each worker stay.
      api_.Delete(kPods, "ns/p" + std::to_string(i - kThreads * 60));
    }
  }

  // True once the books agree with the API server.
  bool Agrees() {
    const auto audit =
        kube::AuditApi(api_, binder_, state_, pod_rules_, kube::OnDifference::kTell, {});
    return audit && audit->differences == 0;
  }

  FakeApiServer api_;
  std::atomic<bool> calm_{false};
  std::mutex random_mutex_;
  Random random_{7};
  PushedClock clock_;
  AlwaysWritable fence_;
  SilentSink sink_;
  ClusterState state_;
  const wire::PodRules pod_rules_{AllDialects(), DefaultConfig().resources};
  const wire::NodeRules node_rules_{DefaultConfig(), AllDialects()};
  kube::NodeSink node_sink_{kube::PublishTo(state_), node_rules_, [](auto, auto, auto&) {}};
  kube::PodSink pod_sink_{state_, pod_rules_, [](auto, auto, auto&) {}};
  kube::ApiBinder binder_{
      {.write = {.client = api_,
                 .clock = clock_,
                 .fence = fence_,
                 .sleep = [](Duration) { std::this_thread::sleep_for(milliseconds(1)); }},
       .rules = pod_rules_}};
  Extender extender_{
      {state_, binder_, sink_, clock_},
      {std::make_shared<Engine>(*BuildProfile(*FindBuiltinProfile("best-fit"), TypicalMix())),
       seconds(30)}};
  std::unique_ptr<kube::Reflector> nodes_, pods_;
  std::atomic<int> bound_{0};
  std::atomic<int> lies_{0};
  std::atomic<int> held_across_lists_{0};
};

TEST_F(FaultRun, NoGpuIsGrantedTwiceOrStaysReserved) {
  const int pods = PodCount();
  std::atomic<bool> done{false};
  std::thread cutter([&] {
    for (int i = 1; !done; ++i) {
      std::this_thread::sleep_for(milliseconds(5));
      if (i % 2 == 0) api_.Compact();
      api_.CutWatches();
      if (i % 10 == 0) (void)extender_.SettleOverdue();
    }
  });
  std::vector<std::thread> workers;
  for (int w = 0; w < kThreads; ++w) workers.emplace_back([this, w, pods] { Work(w, pods); });
  for (std::thread& worker : workers) worker.join();
  done = true;
  cutter.join();

  calm_ = true;
  clock_.Push(seconds(60));
  for (int i = 0; i < 100 && !Agrees(); ++i) {
    (void)extender_.SettleOverdue();
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(lies_, 0) << "reported bound, and not";
  EXPECT_EQ(api_.double_grants(), 0);
  EXPECT_GE(bound_, pods * 99 / 100) << "the faults did not keep the pods from being bound";
  EXPECT_TRUE(Agrees());
  std::size_t reserved = 0;
  for (const PodRecord& pod : state_.Everything().pods) {
    if (pod.state == PodState::kReserved) ++reserved;
  }
  EXPECT_EQ(reserved, 0u);
  EXPECT_EQ(Audit(state_.Everything(), clock_.Now(), seconds(0)), AuditReport());
  EXPECT_GT(held_across_lists_, pods / 10) << "binds overlapped with lists";
  EXPECT_GT(binder_.stats().retries, static_cast<std::uint64_t>(pods) / 20) << "there were faults";
}

}  // namespace
}  // namespace berth::test::fault_run_test
