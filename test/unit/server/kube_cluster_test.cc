// SPDX-License-Identifier: Apache-2.0
//
// Watching and leading, against an API server in memory: what it holds is what ClusterState holds.
#include "server/kube/kube_cluster.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "config/config.h"
#include "test/support/eventually.h"
#include "test/support/fake_api_server.h"

namespace berth::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Eventually;
using test::FakeApiServer;
using test::FakeNode;
using test::FakePod;
using Json = nlohmann::json;

const std::string kNodes = "/api/v1/nodes";
const std::string kPods = "/api/v1/pods";
const std::string kBudgets = "/apis/policy/v1/poddisruptionbudgets";

// A pod that is bound, with the whole GPUs of these indices.
Json BoundPod(const std::string& name, const std::string& node, const std::vector<int>& gpus) {
  Json pod = FakePod(name, {{"nvidia.com/gpu", std::to_string(gpus.size())}});
  pod["spec"]["nodeName"] = node;
  pod["status"]["phase"] = "Running";
  Json list = Json::array();
  for (const int gpu : gpus)
    list.push_back({{"index", gpu}, {"milli", 1000}, {"memory_mib", 81920}});
  pod["metadata"]["annotations"]["berth.dev/devices"] =
      Json{{"version", 1}, {"node", node}, {"containers", {{"main", {{"gpus", list}}}}}}.dump();
  return pod;
}

// One process, and what it knows.
struct Process {
  Process(FakeApiServer& api, const std::string& identity)
      : kube({api, state, budgets, pod_rules, node_rules, clock}, OptionsFor(identity)) {
    kube.Start();
  }

  KubeCluster::Options OptionsFor(const std::string& identity) {
    KubeCluster::Options options;
    if (!identity.empty()) options.election = {"ns", "berth", identity, seconds(5)};
    options.audit_every = milliseconds(50);
    options.api_audit_every = 1;
    options.on_readiness = [this](const char* why_not) { ready = why_not == nullptr; };
    options.on_log = [](bool, std::string_view, std::string_view) {};
    return options;
  }

  [[nodiscard]] std::int64_t Free(std::string_view node) const {
    const auto snapshot = state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    return index == kNoNode ? -1 : snapshot->node(index).free_gpu_milli();
  }
  [[nodiscard]] std::size_t Unreadable(std::size_t resource) const {
    const auto resources = kube.stats().resources;
    return resources.size() > resource ? resources[resource].unreadable : 0;
  }

  ClusterState state;
  DisruptionBudgets budgets;
  const wire::PodRules pod_rules{DefaultConfig().resources};
  const wire::NodeRules node_rules{DefaultConfig()};
  const SystemClock clock;
  std::atomic<bool> ready{false};
  KubeCluster kube;
};

class KubeClusterTest : public testing::Test {
 protected:
  FakeApiServer api_;
};

TEST_F(KubeClusterTest, RebuildsTheClusterFromTheApiServerAndIsReadyThen) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0, 1}));
  Json ended = BoundPod("b", "n1", {2});
  ended["status"]["phase"] = "Succeeded";
  api_.Put(kPods, ended);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n1"), 2000);
  EXPECT_EQ(berth.state.FindPod("uid-a")->placement.grants.size(), 2u);
  EXPECT_TRUE(berth.kube.stats().leading);
}

TEST_F(KubeClusterTest, ANodeWhoseLinksCannotBeReadIsToldAndUsedWithoutThem) {
  Json node = FakeNode("n1", 2);
  node["metadata"]["annotations"]["berth.dev/topology"] = "NV12";
  api_.Put(kNodes, node);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n1"), 2000);
  EXPECT_EQ(berth.Unreadable(0), 1u);
  node["metadata"]["annotations"]["berth.dev/topology"] =
      R"({"version":1,"gpus":2,"cells":["NV12"],"links":"0"})";
  api_.Put(kNodes, node);
  EXPECT_TRUE(Eventually([&] { return berth.Unreadable(0) == 0; }));
  EXPECT_TRUE(Eventually([&] { return berth.state.Current()->node(0).spec().links.known(); }));
}

TEST_F(KubeClusterTest, FollowsWhatChanges) {
  api_.Put(kNodes, FakeNode("n1", 4));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.Put(kPods, BoundPod("a", "n1", {3}));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 3000; }));
  api_.Put(kNodes, FakeNode("n2", 8));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n2") == 8000; }));
  api_.Delete(kPods, "ns/a");
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 4000; }));
  api_.Delete(kNodes, "n2");
  EXPECT_TRUE(Eventually([&] { return berth.Free("n2") == -1; }));
  api_.Put(kBudgets, {{"kind", "PodDisruptionBudget"},
                      {"metadata", {{"name", "b"}, {"namespace", "ns"}}},
                      {"spec", {{"selector", {{"matchLabels", {{"app", "x"}}}}}}},
                      {"status", {{"disruptionsAllowed", 1}}}});
  EXPECT_TRUE(Eventually([&] { return berth.budgets.Current()->size() == 1; }));
}

TEST_F(KubeClusterTest, WhatHappenedWhileTheWatchWasDownIsMadeUpFor) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.SetUp(false);
  api_.Delete(kPods, "ns/a");
  api_.Put(kPods, BoundPod("b", "n1", {1, 2}));
  api_.SetUp(true);
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 2000 && berth.state.FindPod("uid-b"); }));
  EXPECT_FALSE(berth.state.FindPod("uid-a"));
}

TEST_F(KubeClusterTest, AfterACompactionItListsAnew) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.SetUp(false);
  api_.Delete(kPods, "ns/a");
  api_.Compact();
  api_.SetUp(true);
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 4000; }));
  EXPECT_FALSE(berth.state.FindPod("uid-a"));
}

TEST_F(KubeClusterTest, APodThatNoWatchHasEverShownIsGoneAfterTheNextList) {
  api_.Put(kNodes, FakeNode("n1", 4));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  // Bound by this process, created and deleted while the watch was away.
  const ClusterEvent ours = PodBound{{{"uid-x", "ns", "x"}, {}, {}, ""}, {"n1", 1, 0, {}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&ours, 1)));
  api_.Compact();
  api_.CutWatches();
  EXPECT_TRUE(Eventually([&] { return !berth.state.FindPod("uid-x"); }));
}

TEST_F(KubeClusterTest, EventsThatComeTwiceOrLateChangeNothing) {
  api_.disturb = [](std::vector<std::string> lines) {
    std::vector<std::string> twice = lines;
    twice.insert(twice.end(), lines.begin(), lines.end());
    return twice;
  };
  api_.Put(kNodes, FakeNode("n1", 4));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  for (int i = 0; i < 40; ++i) {
    api_.Put(kPods, BoundPod("a" + std::to_string(i), "n1", {i % 4}));
    api_.Delete(kPods, "ns/a" + std::to_string(i));
  }
  api_.Put(kPods, BoundPod("last", "n1", {0}));
  ASSERT_TRUE(Eventually([&] { return berth.state.FindPod("uid-last").has_value(); }));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 3000; })) << "nobody came back";
  EXPECT_EQ(berth.state.Everything().pods.size(), 1u);
}

TEST_F(KubeClusterTest, AnObjectThatCannotBeReadAffectsNothingElse) {
  Json nonsense = FakeNode("n2", 4);
  nonsense["status"]["allocatable"]["cpu"] = "many";
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kNodes, nonsense);
  Json pod = BoundPod("a", "n1", {0});
  pod["metadata"]["annotations"]["berth.dev/devices"] = "{";
  api_.Put(kPods, pod);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n2"), -1);
  EXPECT_EQ(berth.Free("n1"), 3000) << "the pod has a GPU, whichever";
  EXPECT_EQ(berth.Unreadable(0), 1u);
  EXPECT_EQ(berth.Unreadable(1), 1u);
  api_.Put(kNodes, FakeNode("n2", 4));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n2") == 4000 && berth.Unreadable(0) == 0; }));
}

TEST_F(KubeClusterTest, OneOfTwoLeadsAndTheOtherTakesOver) {
  api_.Put(kNodes, FakeNode("n1", 4));
  auto first = std::make_unique<Process>(api_, "first");
  ASSERT_TRUE(Eventually([&] { return first->ready.load(); }));
  Process second(api_, "second");
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_FALSE(second.ready) << "it does not lead";
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  ASSERT_TRUE(Eventually([&] { return first->Free("n1") == 3000; }));
  EXPECT_EQ(second.state.Current()->size(), 0u) << "it does not watch";
  first.reset();
  EXPECT_TRUE(Eventually([&] { return second.ready.load(); }));
  EXPECT_EQ(second.Free("n1"), 3000);
}

TEST_F(KubeClusterTest, TheAuditFindsAPodThatTheWatchHasMissed) {
  api_.Put(kNodes, FakeNode("n1", 4));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits > 0; }));
  EXPECT_EQ(berth.kube.stats().differences_to_api, 0u);
  const ClusterEvent phantom =
      PodBound{{{"phantom", "ns", "phantom"}, {}, {}, ""}, {"n1", 1, 0, {}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&phantom, 1)));
  EXPECT_TRUE(Eventually([&] { return berth.kube.stats().differences_to_api == 1; }));
}

}  // namespace
}  // namespace berth::kube
