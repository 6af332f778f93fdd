// SPDX-License-Identifier: Apache-2.0
//
// Watching and leading, against an API server in memory: what it holds is what ClusterState holds.
#include "server/kube/kube_cluster.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "config/config.h"
#include "scoring/waste/request_mix.h"
#include "server/dialects/koordinator/koordinator_dialect.h"
#include "server/dialects/registry.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/write/pod_writes.h"
#include "server/wire/node/topology_json.h"
#include "test/support/config_places.h"
#include "test/support/dialects.h"
#include "test/support/eventually.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::kube_cluster_test {
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
const std::string kClaims = "/apis/resource.k8s.io/v1/resourceclaims";
const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
const std::string kDeviceClasses = "/apis/resource.k8s.io/v1/deviceclasses";
const std::string kDevices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
const std::string kLeases = "/apis/coordination.k8s.io/v1/leases";
const std::string kPodGroups = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

// A claim that holds these devices of the pool.
Json Claim(const std::string& name, const std::string& pool, const std::vector<std::string>& held) {
  Json results = Json::array();
  for (const std::string& device : held) {
    results.push_back(
        {{"request", "r"}, {"driver", "gpu.nvidia.com"}, {"pool", pool}, {"device", device}});
  }
  Json claim = {{"kind", "ResourceClaim"}, {"metadata", {{"name", name}, {"namespace", "ns"}}}};
  if (!held.empty()) claim["status"]["allocation"]["devices"]["results"] = results;
  return claim;
}

const Gang kGroup = {.id = GangId::Of("coscheduling:ns/g"), .object = Gang::Object::kMissing};

Json PodGroupOf(const std::string& name, int members) {
  return {{"kind", "PodGroup"},
          {"metadata", {{"name", name}, {"namespace", "ns"}}},
          {"spec", {{"minMember", members}}}};
}

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
  Process(ApiClient& api, const std::string& identity,
          const std::function<void(KubeCluster::Options&)>& change = {},
          const MakeExtensions& extensions = {})
      : kube({.client = api,
              .state = state,
              .budgets = budgets,
              .pod_rules = pod_rules,
              .node_rules = node_rules,
              .clock = clock,
              .waiting = &waiting,
              .extensions = extensions ? extensions
                                       : dialects::AllExtensions({.groups = groups,
                                                                  .mig_offers = mig_offers,
                                                                  .device_classes = device_classes,
                                                                  .devices = devices,
                                                                  .open_claims = open_claims,
                                                                  .pod_rules = pod_rules,
                                                                  .links = *node_rules.links,
                                                                  .job_ends = &job_ends})},
             OptionsFor(identity, change)) {
    kube.Start();
  }

  KubeCluster::Options OptionsFor(const std::string& identity,
                                  const std::function<void(KubeCluster::Options&)>& change) {
    KubeCluster::Options options;
    if (!identity.empty()) options.election = {"ns", "berth", identity, seconds(5)};
    options.audit_every = milliseconds(50);
    options.api_audit_every = 1;
    options.look_again_every = milliseconds(20);
    options.on_listed = [this] {
      bound_when_listed = static_cast<int>(BoundPods(*state.Current(), 100).pods);
    };
    options.on_readiness = [this](const char* why_not) {
      ready = why_not == nullptr;
      why = why_not == nullptr ? "" : why_not;
    };
    options.on_unreachable = [this](const char* why_not) { reachable = why_not == nullptr; };
    options.on_log = [this](bool is_problem, std::string_view, std::string_view text) {
      if (is_problem) ++problems;
      if (text.find("is not served") != std::string_view::npos) ++not_served;
      const std::lock_guard lock(log_mutex);
      log.emplace_back(text);
    };
    if (change) change(options);
    return options;
  }

  [[nodiscard]] bool WasTold(const std::string& text) {
    const std::lock_guard lock(log_mutex);
    return std::ranges::find(log, text) != log.end();
  }
  [[nodiscard]] std::int64_t Free(std::string_view node) const {
    const auto snapshot = state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    return index == kNoNode ? -1 : snapshot->node(index).free_gpu_milli();
  }
  [[nodiscard]] int MigDevicesTaken(std::string_view node) const {
    const auto snapshot = state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    if (index == kNoNode) return -1;
    int taken = 0;
    for (const MigSet set : snapshot->node(index).mig().taken()) taken += std::popcount(set);
    return taken;
  }
  [[nodiscard]] std::size_t Unreadable(std::size_t resource) const {
    const auto resources = kube.stats().resources;
    return resources.size() > resource ? resources[resource].unreadable : 0;
  }

  ClusterState state;
  DisruptionBudgets budgets;
  PodGroups groups;
  MigOffers mig_offers;
  DeviceClasses device_classes;
  DeviceOffers devices;
  OpenClaims open_claims;
  JobEndTable job_ends;
  std::atomic<int> arrived{0}, bound_when_listed{-1};
  WaitingPods waiting{
      [this](const WaitingPods::Pods& pods) { arrived += static_cast<int>(pods.size()); }};
  const wire::PodRules pod_rules{test::AllDialects(), DefaultConfig().resources};
  const wire::NodeRules node_rules{DefaultConfig(), test::AllDialects()};
  const SystemClock clock;
  std::atomic<bool> ready{false};
  std::atomic<const char*> why{""};
  std::atomic<bool> reachable{false};
  std::mutex log_mutex;
  std::vector<std::string> log;
  std::atomic<int> problems{0}, not_served{0};
  KubeCluster kube;
};

// An ecosystem that writes down what happens.
class RecordingExtension final : public ClusterExtension {
 public:
  struct Seen {
    std::atomic<int> widgets{0}, node_events{0}, before_bind{0}, bound{0}, upkeeps{0};
  };
  explicit RecordingExtension(Seen& seen) : seen_(seen), sink_(seen) {}

  std::vector<WatchSource> Sources() override {
    return {{.kind = {.name = "widgets",
                      .paths = ApiPaths("example.com", {"v1"}, "widgets"),
                      .optional = true,
                      .await = Await::kList,
                      .why_not_ready = "waiting for the list of widgets"},
             .sink = sink_,
             .unreadable = [] { return std::size_t{7}; },
             .is_needed = {}}};
  }
  PublishNodes DecorateNodes(PublishNodes next) override {
    return [this, next = std::move(next)](std::vector<ClusterEvent> events) {
      seen_.node_events += static_cast<int>(events.size());
      next(std::move(events));
    };
  }
  Status AroundBind(const BindOrder&, const std::function<Status()>& bind) override {
    ++seen_.before_bind;
    Status status = bind();
    if (status) ++seen_.bound;
    return status;
  }
  void Upkeep() override { ++seen_.upkeeps; }
  void AddTo(ExtensionStats& stats) const override { stats.claims_lost += 3; }

 private:
  class Sink final : public ObjectSink {
   public:
    explicit Sink(Seen& seen) : seen_(seen) {}
    void ListBegins() override {}
    void Listed(const PaddedText&) override { ++seen_.widgets; }
    void ListEnds() override {}
    void Changed(const PaddedText&) override { ++seen_.widgets; }
    void Deleted(const PaddedText&) override {}

   private:
    Seen& seen_;
  };
  Seen& seen_;
  Sink sink_;
};

// An API server whose lists of pods may hang, and are counted.
class SlowLists final : public ApiClient {
 public:
  explicit SlowLists(FakeApiServer& api) : api_(api) {}

  Result<ApiResponse> Send(const ApiRequest& request) override { return api_.Send(request); }
  Result<ApiResponse> Stream(const std::string& path, Duration idle_timeout,
                             const std::stop_token& stop, const StreamSink& sink) override {
    const bool of_waiting = path.find("nodeName=,") != std::string::npos;
    if (path.starts_with(kPods) && path.find("watch=1") == std::string::npos && !of_waiting) {
      ++lists;
      while (hang && !stop.stop_requested()) std::this_thread::sleep_for(milliseconds(5));
    }
    return api_.Stream(path, idle_timeout, stop, sink);
  }

  std::atomic<bool> hang{false};
  std::atomic<int> lists{0};

 private:
  FakeApiServer& api_;
};

class KubeClusterTest : public testing::Test {
 protected:
  // As a leader of before has left it.
  void PutReleasedLease() {
    api_.Put(kLeases, {{"metadata", {{"name", "berth"}, {"namespace", "ns"}}},
                       {"spec", {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}}}});
  }

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

// What the process before had on its way is not given to others, whether or not it arrives.
TEST_F(KubeClusterTest, HoldsWhatAKilledProcessHadOnItsWay) {
  const test::ConfigFolder folder;
  const SystemClock clock;
  const auto start = [&] { return *WriteJournal::Open(folder.At(""), clock, seconds(5)); };
  const auto pod = [](const std::string& name) {
    PodRequest request;
    request.id = {"uid-" + name, "ns", name};
    request.shape.gpus = WholeGpus{1};
    return request;
  };
  NodeSpec node;
  node.name = "n1";
  {
    const auto killed = start();
    api_.Put(kLeases,
             {{"metadata", {{"name", "berth"}, {"namespace", "ns"}}},
              {"spec", {{"holderIdentity", "a_" + killed->token()}, {"leaseDurationSeconds", 5}}}});
    const auto binds = [&](const std::string& name, const std::string& on, int gpu) {
      const PodRequest request = pod(name);
      const Placement placement{on, 0, 0, {{gpu, 1000, 81'920}}};
      (void)killed->Begin(NoteOfBind({request, placement, node, {}, ""}));
    };
    binds("late", "n1", 0);
    binds("early", "n1", 1);
    binds("gone", "n0", 2);
  }
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, FakePod("late", {{"nvidia.com/gpu", "1"}}));
  api_.Put(kPods, BoundPod("early", "n1", {1}));
  const auto journal = start();
  const auto began = clock.Now();
  Process berth(api_, "a_" + journal->token(),
                [&](KubeCluster::Options& options) { options.election->journal = journal.get(); });
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_LT(clock.Now(), began + seconds(5)) << "it did not wait for the lease";
  ASSERT_TRUE(berth.state.FindPod("uid-late"));
  EXPECT_EQ(berth.state.FindPod("uid-late")->state, PodState::kReserved);
  EXPECT_EQ(berth.state.FindPod("uid-early")->state, PodState::kBound);
  EXPECT_EQ(berth.Free("n1"), 2000);
  EXPECT_TRUE(berth.WasTold(
      "pod ns/late was being bound to node n1; its devices are kept until the API server has the "
      "outcome"));
  EXPECT_TRUE(berth.WasTold("pod ns/gone was being bound to node n0: node n0 is not known"));
  const auto settles = [&](Duration after) {
    return berth.state.Overdue(journal->left_until() + after).size();
  };
  EXPECT_EQ(settles(-milliseconds(1)), 0u);
  EXPECT_EQ(settles({}), 1u) << "then the API server is asked";
  api_.Put(kPods, BoundPod("late", "n1", {0}));
  EXPECT_TRUE(
      Eventually([&] { return berth.state.FindPod("uid-late")->state == PodState::kBound; }));
  EXPECT_EQ(berth.Free("n1"), 2000);
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

TEST_F(KubeClusterTest, HoldsNodesFromAutoscalersAndLetsGoOfWhatAProcessBeforeHeld) {
  Json theirs = FakeNode("n2", 2);
  theirs["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true";
  api_.Put(kNodes, FakeNode("n1", 2));
  api_.Put(kNodes, theirs);
  const auto texts = [this](const std::string& node) {
    const Json metadata = api_.Get(kNodes, node)["metadata"];
    return metadata.value("annotations", Json::object());
  };
  const Json before = texts("n1"), before_theirs = texts("n2");
  const std::set<std::string> both = {"n1", "n2"};
  {
    Process berth(api_, "");
    ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
    for (const std::string& node : both) berth.kube.node_holder().Hold(node, true);
    ASSERT_TRUE(Eventually([&] { return berth.kube.node_holder().Held() == both; }));
    EXPECT_EQ(texts("n1")["karpenter.sh/do-not-disrupt"], "true");
    EXPECT_EQ(texts("n2")["cluster-autoscaler.kubernetes.io/scale-down-disabled"], "true");
  }
  Process next(api_, "");
  ASSERT_TRUE(Eventually([&] { return next.kube.node_holder().Held() == both; }));
  for (const std::string& node : both) next.kube.node_holder().Hold(node, false);
  ASSERT_TRUE(Eventually([&] { return next.kube.node_holder().Held().empty(); }));
  EXPECT_EQ(texts("n1"), before);
  EXPECT_EQ(texts("n2"), before_theirs) << "what others have set stays";
  api_.Delete(kNodes, "n2");
  EXPECT_TRUE(Eventually([&] { return next.Free("n2") == -1; }));
}

TEST_F(KubeClusterTest, AnEcosystemIsWatchedAndWrapsBindsThroughItsPorts) {
  const std::string widgets = "/apis/example.com/v1/widgets";
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, FakePod("p", {{"nvidia.com/gpu", "1"}}));
  api_.Put(widgets, {{"kind", "Widget"}, {"metadata", {{"name", "w"}}}});
  api_.SetStatus(widgets, 500);
  RecordingExtension::Seen seen;
  Process berth(api_, "", {}, [&seen](const ExtensionContext&) {
    ClusterExtensions all;
    for (int i = 0; i < 2; ++i) all.push_back(std::make_unique<RecordingExtension>(seen));
    return all;
  });
  ASSERT_TRUE(Eventually(
      [&] { return berth.why.load() == std::string_view("waiting for the list of widgets"); }));
  api_.SetStatus(widgets, 200);
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(seen.widgets, 2) << "each of the two has a watch of its own";
  EXPECT_EQ(seen.node_events, 2);
  EXPECT_EQ(berth.Free("n1"), 4000);
  const KubeClusterStats stats = berth.kube.stats();
  EXPECT_EQ(stats.resources.at(3).name, "widgets");
  EXPECT_EQ(stats.resources.at(3).unreadable, 7U);
  EXPECT_EQ(stats.extensions.claims_lost, 6U);

  PodRequest pod;
  pod.id = {"uid-p", "ns", "p"};
  pod.containers.push_back({"main", WholeGpus{1}, false});
  const Placement placement{"n1", 0, 0, {{0, 1000, 81'920}}};
  const NodeSpec node = berth.state.Current()->node(0).spec();
  const BindOrder order{pod, placement, node, berth.clock.Now() + seconds(10), "0123456789abcdef"};
  ASSERT_TRUE(berth.kube.binder().Bind(order));
  EXPECT_EQ(seen.before_bind, 2);
  EXPECT_EQ(seen.bound, 2);
  berth.kube.Upkeep();
  EXPECT_EQ(seen.upkeeps, 2);
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
  const ClusterEvent ours = PodBound{{{"uid-x", "ns", "x"}, {}, {}, 0, ""}, {"n1", 1, 0, {}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&ours, 1)));
  api_.Compact();
  api_.CutWatches();
  EXPECT_TRUE(Eventually([&] { return !berth.state.FindPod("uid-x"); }));
}

TEST_F(KubeClusterTest, PodsWithMigDevicesWaitUntilTheyHaveANodeOrAreGone) {
  Json pod = FakePod("a", {{"nvidia.com/mig-1g.5gb", "1"}});
  api_.Put(kPods, pod);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  Json node = FakeNode("n1", 0);
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB";
  node["metadata"]["labels"]["nvidia.com/mig.strategy"] = "mixed";
  node["status"]["allocatable"]["nvidia.com/mig-1g.5gb"] = "7";
  api_.Put(kNodes, node);
  EXPECT_EQ(berth.waiting.Current().size(), 0u) << "nobody has looked for a node yet";
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  api_.Put(kPods, pod);
  EXPECT_TRUE(Eventually([&] { return berth.waiting.Current().size() == 1; }));
  pod["spec"]["nodeName"] = "n1";
  api_.Put(kPods, pod);
  EXPECT_TRUE(Eventually([&] { return berth.waiting.Current().empty(); }));
  pod["spec"].erase("nodeName");
  pod["metadata"]["name"] = "b";
  pod["metadata"]["uid"] = "uid-b";
  api_.Put(kPods, pod);
  EXPECT_TRUE(Eventually([&] { return berth.waiting.Current().size() == 1; }));
  api_.Delete(kPods, "ns/b");
  EXPECT_TRUE(Eventually([&] { return berth.waiting.Current().empty(); }));
}

// Its bind may be on its way for as long as the API server takes.
TEST_F(KubeClusterTest, AReservationOutlivesListsOfThePods) {
  api_.Put(kNodes, FakeNode("n1", 4));
  const Json pod = FakePod("a", {{"nvidia.com/gpu", "1"}});
  api_.Put(kPods, pod);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  const PodRequest request = wire::DecodeObservedPod(PaddedText(pod.dump()), berth.pod_rules)->pod;
  ASSERT_TRUE(berth.state.Reserve(request, {"n1", 0, 0, {{0, kMilliPerGpu, 0}}},
                                  berth.clock.Now() + std::chrono::hours(1)));
  const auto lists = [&] {
    for (const auto& resource : berth.kube.stats().resources) {
      if (resource.name == "pods") return resource.watch.lists;
    }
    return std::uint64_t{0};
  };
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = lists();
    api_.Compact();
    api_.CutWatches();
    ASSERT_TRUE(Eventually([&] { return lists() > before; }));
    const auto held = berth.state.FindPod(request.id.uid);
    ASSERT_TRUE(held);
    EXPECT_EQ(held->state, PodState::kReserved);
  }
  api_.Delete(kPods, "ns/a");
  EXPECT_TRUE(Eventually([&] { return !berth.state.FindPod(request.id.uid); }))
      << "a pod that is deleted before it is bound holds nothing";
}

TEST_F(KubeClusterTest, PodsArriveOnceEachAfterAllThatIsBoundIsKnown) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, FakePod("early", {{"nvidia.com/gpu", "8"}}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.arrived.load() == 1; }));
  EXPECT_EQ(berth.bound_when_listed.load(), 0) << "was asked for before";
  Json pod = FakePod("late", {{"nvidia.com/gpu", "1"}});
  api_.Put(kPods, pod);
  ASSERT_TRUE(Eventually([&] { return berth.arrived.load() == 2; }));
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  api_.Put(kPods, pod);
  api_.Compact();
  api_.CutWatches();  // all are listed once more
  api_.Put(kPods, FakePod("last", {{"nvidia.com/gpu", "1"}}));
  ASSERT_TRUE(Eventually([&] { return berth.arrived.load() >= 3; }));
  EXPECT_EQ(berth.arrived.load(), 3);
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
  EXPECT_EQ(berth.Free("n2"), 4000) << "its CPU is not known, its GPUs are";
  EXPECT_EQ(berth.Free("n1"), 3000) << "the pod has a GPU, whichever";
  EXPECT_EQ(berth.Unreadable(0), 1u);
  EXPECT_EQ(berth.Unreadable(1), 1u);
  api_.Put(kNodes, FakeNode("n2", 4));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n2") == 4000 && berth.Unreadable(0) == 0; }));
}

TEST_F(KubeClusterTest, AnUnreadableObjectDeletedWhileTheWatchIsDownIsNotCounted) {
  Json nonsense = FakeNode("n1", 4);
  nonsense["status"]["allocatable"]["cpu"] = "many";
  api_.Put(kNodes, nonsense);
  api_.Put(kPodGroups, PodGroupOf("g", -1));
  api_.Put(kPodGroups, PodGroupOf("h", -1));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Unreadable(0), 1u);
  EXPECT_EQ(berth.Unreadable(7), 2u);
  api_.SetUp(false);
  api_.Delete(kNodes, "n1");
  api_.Delete(kPodGroups, "ns/g");
  api_.Compact();
  api_.SetUp(true);
  EXPECT_TRUE(Eventually([&] { return berth.Unreadable(0) == 0 && berth.Unreadable(7) == 1; }));
}

TEST_F(KubeClusterTest, GpusThatClaimsHoldAreNotFree) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kClaims, Claim("a", "n1", {"gpu-0", "gpu-1-mig-1g5gb-19-6"}));
  api_.Put(kClaims, Claim("b", "n1", {"gpu-1-mig-1g5gb-19-5"}));
  api_.Put(kClaims, Claim("waits", "n1", {}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n1"), 2000);
  api_.Put(kClaims, Claim("a", "n1", {}));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 3000; })) << "b has a part of GPU 1";
  api_.Delete(kClaims, "ns/b");
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 4000; }));
  EXPECT_EQ(berth.kube.stats().audit, AuditReport());
}

TEST_F(KubeClusterTest, MigDevicesOfADeviceClassBelongToTheNodeAndClaimsHoldThem) {
  const Json device = {
      {"name", "gpu-0-mig-1g5gb-19-6"},
      {"attributes", {{"type", {{"string", "mig"}}}, {"profile", {{"string", "1g.5gb"}}}}},
      {"consumesCounters",
       Json::array({{{"counterSet", "c"}, {"counters", {{"memory-slice-6", {{"value", "1"}}}}}}})}};
  Json spec = {
      {"driver", "gpu.nvidia.com"}, {"nodeName", "n1"}, {"devices", Json::array({device})}};
  spec["pool"] = {{"name", "n1"}, {"generation", 1}};
  api_.Put(kNodes, FakeNode("n1", 0));
  api_.Put(kSlices,
           {{"kind", "ResourceSlice"}, {"metadata", {{"name", "s"}}}, {"spec", std::move(spec)}});
  api_.Put(kClaims, Claim("p-extended-resources-x", "n1", {"gpu-0-mig-1g5gb-19-6"}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.MigDevicesTaken("n1"), 0);
  const Json cel = {
      {"cel", {{"expression", "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}}};
  api_.Put(kDeviceClasses,
           {{"kind", "DeviceClass"},
            {"metadata", {{"name", "small"}}},
            {"spec",
             {{"extendedResourceName", "example.com/small"}, {"selectors", Json::array({cel})}}}});
  EXPECT_TRUE(Eventually([&] { return berth.MigDevicesTaken("n1") == 1; }));
  EXPECT_TRUE(berth.device_classes.ClassOf("example.com/small"));
  api_.Delete(kDeviceClasses, "small");
  EXPECT_TRUE(Eventually([&] { return berth.MigDevicesTaken("n1") == 0; }));
}

// One per GPU: its NUMA node and its PCIe switch.
Json KoordinatorDevice(const std::string& node,
                       const std::vector<std::pair<int, std::string>>& places) {
  Json devices = Json::array();
  for (const auto& [numa, pcie] : places) {
    const auto minor = static_cast<int>(devices.size());
    devices.push_back({{"type", "gpu"},
                       {"id", "GPU-" + std::to_string(minor)},
                       {"minor", minor},
                       {"health", true},
                       {"topology", {{"socketID", numa}, {"nodeID", numa}, {"pcieID", pcie}}}});
  }
  return {{"kind", "Device"}, {"metadata", {{"name", node}}}, {"spec", {{"devices", devices}}}};
}

TEST_F(KubeClusterTest, KoordinatorTellsTheLinksOfNodesThatHaveNothingBetter) {
  api_.Put(kNodes, FakeNode("n1", 2));
  api_.Put(kDevices, KoordinatorDevice("n1", {{0, "a"}, {1, "b"}}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  const auto spec = [&berth](const std::string& node) {
    const auto snapshot = berth.state.Current();
    return snapshot->node(snapshot->names().Find(node)).spec();
  };
  const auto source = [&spec](const std::string& node) {
    const GpuLinks links = spec(node).links;
    return links.known() ? links.origin().name : "";
  };
  ASSERT_TRUE(Eventually([&] { return source("n1") == dialects::kKoordinatorSource; }));
  EXPECT_EQ(spec("n1").links.span(0b11), 2);
  EXPECT_EQ(spec("n1").gpus[1].uuid, "GPU-1");
  // The node comes later; both change; the Device goes.
  api_.Put(kDevices, KoordinatorDevice("n2", {{0, "a"}, {0, "a"}}));
  api_.Put(kNodes, FakeNode("n2", 2));
  ASSERT_TRUE(Eventually([&] { return berth.Free("n2") == 2000; }));
  ASSERT_TRUE(Eventually([&] { return source("n2") == dialects::kKoordinatorSource; }));
  EXPECT_EQ(spec("n2").links.span(0b11), 1);
  api_.Put(kDevices, KoordinatorDevice("n2", {{0, "a"}, {1, "a"}}));
  EXPECT_TRUE(Eventually([&] { return spec("n2").links.span(0b11) == 2; }));
  api_.Delete(kDevices, "n2");
  EXPECT_TRUE(Eventually([&] { return source("n2").empty(); }));
  EXPECT_EQ(spec("n2").gpus[1].uuid, "");
  EXPECT_EQ(source("n1"), dialects::kKoordinatorSource);
}

TEST_F(KubeClusterTest, KoordinatorNamesTheUuidsThatTheNodeDoesNotSayItself) {
  Json says = FakeNode("says", 2), linked = FakeNode("linked", 2);
  says["metadata"]["annotations"]["berth.dev/gpu-uuids"] = "own-0,own-1";
  linked["metadata"]["annotations"]["berth.dev/topology"] =
      R"({"version":1,"gpus":2,"cells":["NV12"],"links":"0"})";
  for (const char* node : {"says", "linked"}) {
    api_.Put(kDevices, KoordinatorDevice(node, {{0, "a"}, {1, "b"}}));
  }
  api_.Put(kNodes, says);
  api_.Put(kNodes, linked);
  Process berth(api_, "");
  const auto uuid = [&berth](const std::string& node) {
    const auto snapshot = berth.state.Current();
    return snapshot->node(snapshot->names().Find(node)).spec().gpus[1].uuid;
  };
  ASSERT_TRUE(Eventually([&] { return berth.ready.load() && uuid("linked") == "GPU-1"; }))
      << "also where the links of the node are better";
  EXPECT_EQ(uuid("says"), "own-1");
  for (const char* node : {"says", "linked"}) api_.Delete(kDevices, node);
  EXPECT_TRUE(Eventually([&] { return uuid("linked").empty(); }));
  EXPECT_EQ(uuid("says"), "own-1");
}

TEST_F(KubeClusterTest, KoordinatorServesANodeWhileItsDeviceIsThere) {
  Json node = FakeNode("n1", 2);
  node["status"]["allocatable"]["koordinator.sh/gpu-core"] = "200";
  api_.Put(kNodes, node);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  const auto spec = [&berth] { return berth.state.Current()->node(0).spec(); };
  EXPECT_EQ(spec().share_agent, "");
  Json device = KoordinatorDevice("n1", {{0, "a"}, {1, "b"}});
  device["spec"]["devices"][1]["health"] = false;
  api_.Put(kDevices, device);
  ASSERT_TRUE(Eventually([&] { return spec().share_agent == "koordinator"; }));
  EXPECT_FALSE(spec().gpus[1].healthy);
  EXPECT_EQ(spec().gpus[0].uuid, "GPU-0");
  api_.Delete(kDevices, "n1");
  EXPECT_TRUE(Eventually([&] { return spec().share_agent.empty(); }));
  EXPECT_TRUE(spec().gpus[1].healthy);
}

TEST_F(KubeClusterTest, ADeviceThatIsNotOfThatNodeIsNamedAndLeavesItAsItWas) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kDevices, KoordinatorDevice("n1", {{0, "a"}, {1, "b"}}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  const auto unreadable = [&berth] {
    for (const auto& resource : berth.kube.stats().resources) {
      if (resource.name == "devices") return resource.unreadable;
    }
    return std::size_t{99};
  };
  EXPECT_TRUE(Eventually([&] { return unreadable() == 1; }));
  EXPECT_EQ(berth.Free("n1"), 4000);
  const auto snapshot = berth.state.Current();
  ASSERT_TRUE(snapshot->node(0).spec().links.known());
  EXPECT_EQ(snapshot->node(0).spec().links.source(), LinkSource::kCatalogue);
  api_.Put(kNodes, FakeNode("n1", 2));
  EXPECT_TRUE(Eventually([&] { return unreadable() == 0; }));
}

TEST_F(KubeClusterTest, WhatWasReleasedWhileTheWatchWasDownIsFree) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kClaims, Claim("a", "n1", {"gpu-0"}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load() && berth.Free("n1") == 3000; }));
  api_.SetUp(false);
  api_.Delete(kClaims, "ns/a");
  api_.Compact();
  api_.SetUp(true);
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 4000; }));
}

TEST_F(KubeClusterTest, AbsentApisDelayNoPodAndAreWatchedOnceServed) {
  api_.SetStatus(kClaims, 404);
  api_.SetStatus("/apis/resource.k8s.io/v1beta2/resourceclaims", 404);
  api_.SetStatus("/apis/resource.k8s.io/v1beta1/resourceclaims", 404);
  api_.SetStatus(kPodGroups, 404);
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kClaims, Claim("a", "n1", {"gpu-0"}));
  api_.Put(kPodGroups, PodGroupOf("g", 3));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n1"), 4000);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(berth.not_served, 2) << "each is logged once";
  EXPECT_EQ(berth.problems, 0);
  api_.SetStatus(kClaims, 200);
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 3000; }));
  api_.SetStatus(kPodGroups, 200);
  EXPECT_TRUE(Eventually([&] { return berth.groups.Find(kGroup).has_value(); }));
  api_.SetStatus(kPodGroups, 404);
  EXPECT_TRUE(Eventually([&] { return !berth.groups.Find(kGroup); })) << "and when they go";
  EXPECT_TRUE(berth.ready);
}

TEST_F(KubeClusterTest, NodesAndPodsThatAreNotFoundAreNoEmptyLists) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.Compact();
  for (const std::string& path : {kNodes, kPods}) api_.SetStatus(path, 404);  // a proxy is wrong
  ASSERT_TRUE(Eventually([&] { return berth.problems >= 4; })) << "a watch and a list of each";
  EXPECT_EQ(berth.Free("n1"), 3000);
  EXPECT_TRUE(berth.state.FindPod("uid-a"));
  EXPECT_EQ(berth.not_served, 0);
  Process other(api_, "");
  EXPECT_TRUE(Eventually([&] { return other.problems >= 2; }));
  EXPECT_FALSE(other.ready);
  EXPECT_TRUE(Eventually([&] {
    return other.why.load() == std::string_view("waiting for the list of nodes");
  })) << other.why.load();
}

TEST_F(KubeClusterTest, WhatBerthMayNotReadKeepsNobodyWaitingUnlessItMustKnow) {
  api_.SetStatus(kClaims, 403);
  api_.Put(kNodes, FakeNode("n1", 4));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_GE(berth.problems, 1);
  api_.SetStatus(kNodes, 403);
  Process other(api_, "");
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_FALSE(other.ready);
}

TEST_F(KubeClusterTest, AnOptionalApiThatAnswersWithErrorsDelaysNoPod) {
  for (const std::string& path : {kPodGroups, kDevices, kDeviceClasses, kBudgets}) {
    api_.SetStatus(path, 500);  // a CRD that was left, whose webhook is gone
  }
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPodGroups, PodGroupOf("g", 3));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); })) << berth.why;
  EXPECT_GE(berth.problems, 4);
  api_.SetStatus(kPodGroups, 200);
  EXPECT_TRUE(Eventually([&] { return berth.groups.Find(kGroup).has_value(); }));
}

TEST_F(KubeClusterTest, WhatHoldsDevicesIsWaitedForAndNamed) {
  const auto waits_for = [](Process& berth, const std::string& text) {
    return Eventually([&] { return berth.why.load() == text && berth.problems >= 1; });
  };
  api_.SetStatus(kClaims, 500);
  Process berth(api_, "");
  EXPECT_TRUE(waits_for(berth, "waiting for the list of resourceclaims")) << berth.why;
  api_.SetStatus(kNodes, 500);
  Process other(api_, "");
  EXPECT_TRUE(waits_for(other, "waiting for the list of nodes")) << other.why;
}

TEST_F(KubeClusterTest, RightsThatAreLostForAMomentReleaseNothing) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kClaims, Claim("a", "n1", {"gpu-0"}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load() && berth.Free("n1") == 3000; }));
  api_.Compact();
  api_.SetStatus(kClaims, 403);
  ASSERT_TRUE(Eventually([&] { return berth.problems >= 2; }));
  EXPECT_EQ(berth.Free("n1"), 3000);
  api_.SetStatus(kClaims, 200);
}

TEST_F(KubeClusterTest, AClaimThatCannotBeReadIsToldAndHoldsNothing) {
  api_.Put(kNodes, FakeNode("n1", 4));
  Json nonsense = Claim("a", "n1", {"gpu-0"});
  nonsense["status"]["allocation"]["devices"]["results"] = "all";
  api_.Put(kClaims, nonsense);
  api_.Put(kClaims, Claim("b", "n1", {"the-best-one"}));
  api_.Put(kClaims, Claim("c", "n1", {"gpu-2"}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  EXPECT_EQ(berth.Free("n1"), 3000);
  EXPECT_EQ(berth.Unreadable(4), 2u);
  EXPECT_EQ(berth.kube.stats().resources[4].name, "resourceclaims");
  api_.Put(kClaims, Claim("a", "n1", {"gpu-0"}));
  EXPECT_TRUE(Eventually([&] { return berth.Free("n1") == 2000 && berth.Unreadable(4) == 1; }));
}

TEST_F(KubeClusterTest, APodGroupTellsHowManyPodsTheGroupIsToHave) {
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  wire::PodParts parts;
  parts.id = {"u", "ns", "p"};
  parts.labels = {{"scheduling.x-k8s.io/pod-group", "g"}};
  const wire::PodRules rules(test::AllDialects(), DefaultConfig().resources, {}, &berth.groups);
  const auto minimum = [&] { return rules.ToRequest(parts).gang.minimum; };
  EXPECT_EQ(minimum(), std::nullopt);
  EXPECT_EQ(rules.ToRequest(parts).gang.object, Gang::Object::kMissing);
  api_.Put(kPodGroups, PodGroupOf("g", 3));
  EXPECT_TRUE(Eventually([&] { return minimum() == 3; })) << "after its pod";
  api_.Put(kPodGroups, PodGroupOf("g", 5));
  EXPECT_TRUE(Eventually([&] { return minimum() == 5; }));
  api_.Delete(kPodGroups, "ns/g");
  EXPECT_TRUE(Eventually([&] { return !minimum(); }));
}

TEST_F(KubeClusterTest, AControllerTellsHowManyPodsItMakes) {
  const std::pair<std::string, Json> objects[] = {
      {"/apis/batch/v1/jobs", {{"kind", "Job"}, {"spec", {{"parallelism", 4}}}}},
      {"/apis/jobset.x-k8s.io/v1alpha2/jobsets", {{"kind", "JobSet"}}},
      {"/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets", {{"kind", "LeaderWorkerSet"}}},
      {"/apis/disaggregatedset.x-k8s.io/v1/disaggregatedsets", {{"kind", "DisaggregatedSet"}}},
      {"/apis/scheduler.grove.io/v1alpha1/podgangs", {{"kind", "PodGang"}}}};
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  for (const auto& [path, of] : objects) {
    Json object = of;
    object["metadata"] = {{"name", "c"}, {"namespace", "ns"}, {"uid", "u"}};
    api_.Put(path, object);
    Gang gang;
    gang.id = {"berth", "ns", "g"};
    gang.controller = {of["kind"], "c", "u", true};
    gang.object = Gang::Object::kMissing;
    const auto is_known = [&] {
      berth.groups.Update(gang);
      return gang.object == Gang::Object::kFound;
    };
    EXPECT_TRUE(Eventually(is_known)) << path;
    api_.Delete(path, "ns/c");
    EXPECT_TRUE(Eventually([&] { return !is_known(); })) << path;
  }
}

TEST_F(KubeClusterTest, ATreeOfGroupsIsWatched) {
  const auto put = [this](const std::string& resource, const Json& spec) {
    api_.Put("/apis/scheduling.k8s.io/v1/" + resource,
             {{"kind", resource == "podgroups" ? "PodGroup" : "CompositePodGroup"},
              {"metadata", {{"name", "of-" + resource}, {"namespace", "ns"}}},
              {"spec", spec}});
  };
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  put("podgroups", {{"parentCompositePodGroupName", "of-compositepodgroups"},
                    {"schedulingPolicy", {{"gang", {{"minCount", 3}}}}}});
  wire::PodParts parts;
  parts.id = {"u", "ns", "p"};
  parts.pod_group = "of-podgroups";
  const wire::PodRules rules(test::AllDialects(), DefaultConfig().resources, {}, &berth.groups);
  EXPECT_TRUE(Eventually([&] { return !rules.ToRequest(parts).gang.controller.empty(); }));
  EXPECT_EQ(rules.ToRequest(parts).gang.minimum, std::nullopt);
  put("compositepodgroups", {{"schedulingPolicy", {{"gang", {{"minGroupCount", 1}}}}}});
  EXPECT_TRUE(Eventually([&] { return rules.ToRequest(parts).gang.minimum == 3; }));
}

TEST_F(KubeClusterTest, AJobTellsUntilWhenItsPodsRun) {
  const char* const kJobs = "/apis/batch/v1/jobs";
  const auto job = [](int deadline) -> Json {
    return {{"kind", "Job"},
            {"metadata", {{"name", "j"}, {"namespace", "ns"}, {"uid", "u"}}},
            {"spec", {{"activeDeadlineSeconds", deadline}}},
            {"status", {{"startTime", "2026-11-27T10:00:00Z"}}}};
  };
  api_.Put(kJobs, job(600));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  PodRequest pod;
  pod.id.namespace_name = "ns";
  pod.controller = "u";
  const auto end = [&] { return berth.job_ends.Of(pod, {}); };
  ASSERT_TRUE(Eventually([&] { return end().has_value(); })) << "listed";
  const WallTime said = *end();
  api_.Put(kJobs, job(300));
  EXPECT_TRUE(Eventually([&] { return end() == said - seconds(300); }));
  api_.Put(kJobs, job(900));
  api_.Delete(kJobs, "ns/j");
  EXPECT_TRUE(Eventually([&] { return !end(); }));
}

// Somebody took the right to read Jobs out of the manifests.
TEST_F(KubeClusterTest, WhoMayNotReadJobsIsToldOnceAndServes) {
  api_.SetStatus("/apis/batch/v1/jobs", 403);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  std::this_thread::sleep_for(milliseconds(700));  // it has tried again
  EXPECT_EQ(berth.problems, 1);
  EXPECT_EQ(berth.job_ends.jobs(), 0u);
}

TEST_F(KubeClusterTest, OneOfTwoLeadsAndTheOtherTakesOver) {
  PutReleasedLease();
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

TEST_F(KubeClusterTest, AnAnnotationThatChangesIsReportedAndNotBelieved) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.Put(kPods, BoundPod("a", "n1", {3}));
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().disputed_pods == 1; }));
  EXPECT_EQ(berth.state.FindPod("uid-a")->placement.grants.at(0).gpu, 0);
  EXPECT_EQ(berth.Free("n1"), 3000);
  ASSERT_TRUE(Eventually([&] { return api_.All("/api/v1/events").size() == 1; }));
  const Json event = api_.All("/api/v1/events").front();
  EXPECT_EQ(event["reason"], "DevicesDisputed");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["message"],
            "annotation berth.dev/devices says GPU 3 on node n1, but Berth knows it to have GPU 0");
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  EXPECT_TRUE(Eventually([&] { return berth.kube.stats().disputed_pods == 0; }));
}

// Who has the label of the pods a and b.
std::string Labelled(const FakeApiServer& api) {
  std::string who;
  for (const char* pod : {"a", "b"}) {
    const Json metadata = api.Get(kPods, std::string("ns/") + pod)["metadata"];
    if (metadata.value("labels", Json::object()).contains(kLeaderLabel)) who += pod;
  }
  return who;
}

std::function<void(KubeCluster::Options&)> WithLabelOf(const std::string& pod) {
  return [pod](KubeCluster::Options& options) {
    options.label.emplace();
    options.label->namespace_name = "ns";
    options.label->pod = pod;
    options.label->retry_every = milliseconds(20);
  };
}

TEST_F(KubeClusterTest, TheLabelOfThePodsFollowsTheLeaderAndTheOtherIsAStandby) {
  PutReleasedLease();
  for (const char* pod : {"a", "b"}) api_.Put(kPods, FakePod(pod, Json::object()));
  auto a = std::make_unique<Process>(api_, "a", WithLabelOf("a"));
  ASSERT_TRUE(Eventually([&] { return a->ready && a->reachable; }));
  EXPECT_EQ(a->kube.stats().labelled, true);
  Process b(api_, "b", WithLabelOf("b"));
  ASSERT_TRUE(Eventually([&] { return b.why.load() == kStandby && b.reachable; }));
  EXPECT_EQ(Labelled(api_), "a");
  EXPECT_EQ(b.kube.stats().labelled, false);
  a.reset();
  ASSERT_TRUE(Eventually([&] { return b.ready && b.reachable; }));
  EXPECT_TRUE(Labelled(api_).ends_with("b")) << "a pod that is gone may keep it";
  // Its container starts anew.
  Process again(api_, "a", WithLabelOf("a"));
  ASSERT_TRUE(Eventually([&] { return again.why.load() == kStandby && again.reachable; }));
  EXPECT_EQ(Labelled(api_), "b");
}

TEST_F(KubeClusterTest, ALeaderThatMayNotLabelItsPodAnswersButIsNotLedTo) {
  PutReleasedLease();
  for (const char* pod : {"a", "b"}) api_.Put(kPods, FakePod(pod, Json::object()));
  std::atomic<bool> may{false};
  api_.fault = [&may](const ApiRequest& request) {
    return request.method == "PATCH" && !may ? test::Fault::kForbidden : test::Fault::kNone;
  };
  Process a(api_, "a", WithLabelOf("a"));
  ASSERT_TRUE(Eventually([&] { return a.ready.load(); }));
  EXPECT_FALSE(a.reachable);
  EXPECT_EQ(a.kube.stats().labelled, false);
  Process b(api_, "b", WithLabelOf("b"));
  ASSERT_TRUE(Eventually([&] { return b.why.load() == kStandby; }));
  EXPECT_FALSE(b.reachable) << "a rollout stops before the old pods go";
  may = true;
  EXPECT_TRUE(Eventually([&] { return a.reachable.load(); }));
  EXPECT_EQ(Labelled(api_), "a");
}

TEST_F(KubeClusterTest, WithoutAPodToLabelWhoDoesNotLeadIsNotReady) {
  PutReleasedLease();
  Process a(api_, "a");
  ASSERT_TRUE(Eventually([&] { return a.ready.load(); }));
  EXPECT_EQ(a.kube.stats().labelled, std::nullopt);
  Process b(api_, "b");
  ASSERT_TRUE(Eventually([&] { return !std::string_view(b.why.load()).empty(); }));
  EXPECT_NE(b.why.load(), kStandby);
  EXPECT_TRUE(a.reachable);
}

TEST_F(KubeClusterTest, ALeaseThatIsDeletedMakesItUnreadyAndItComesBack) {
  PutReleasedLease();
  Process berth(api_, "only");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  api_.Delete(kLeases, "ns/berth");
  ASSERT_TRUE(Eventually([&] { return !berth.ready; }));
  EXPECT_TRUE(Eventually([&] { return berth.ready.load(); }));
}

TEST_F(KubeClusterTest, AHangingAuditDelaysNeitherLeaseNorReadiness) {
  PutReleasedLease();
  SlowLists slow(api_);
  Process berth(slow, "only");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  slow.hang = true;
  const int lists = slow.lists;
  ASSERT_TRUE(Eventually([&] { return slow.lists > lists; })) << "the audit hangs";
  const auto version = [&] {
    return api_.Get(kLeases, "ns/berth")["metadata"]["resourceVersion"].get<std::string>();
  };
  for (int renewals = 0; renewals < 3; ++renewals) {
    const std::string before = version();
    EXPECT_TRUE(Eventually([&] { return version() != before; }));
  }
  api_.SetUp(false);
  EXPECT_TRUE(Eventually([&] { return !berth.ready; })) << "the lease has run out meanwhile";
}

TEST_F(KubeClusterTest, WhatHasJustBeenListedIsNotAuditedAgainstTheApiServer) {
  SlowLists api(api_);
  Process berth(api, "", [](KubeCluster::Options& options) { options.api_audit_every = 3; });
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits == 2; }));
  EXPECT_EQ(api.lists, 1) << "that of the watch";
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits == 3; }));
  EXPECT_EQ(api.lists, 2);
}

TEST_F(KubeClusterTest, TheAuditAddsAPodThatTheWatchMissed) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits > 0; }));
  EXPECT_EQ(berth.kube.stats().differences_to_api, 0u);
  const ClusterEvent phantom =
      PodBound{{{"uid-x", "ns", "phantom"}, {}, {}, 0, ""}, {"n1", 1, 0, {}}};
  const ClusterEvent elsewhere = PodBound{{{"uid-a", "ns", "a"}, {}, {}, 0, ""}, {"n2", 1, 0, {}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&phantom, 1)));
  ASSERT_TRUE(berth.state.Apply(std::span(&elsewhere, 1)));
  EXPECT_TRUE(Eventually([&] {
    return berth.WasTold(
               "pod ns/phantom: the API server has it nowhere, Berth on node n1; repaired") &&
           berth.WasTold("pod ns/a: the API server has it on node n1, Berth on node n2; repaired");
  }));
  EXPECT_TRUE(Eventually([&] { return berth.kube.stats().differences_to_api == 0; }));
  EXPECT_FALSE(berth.state.FindPod("uid-x"));
  EXPECT_EQ(berth.state.FindPod("uid-a")->placement.node, "n1");
  EXPECT_EQ(berth.Free("n1"), 3000);
}

// The kubelet gave other GPUs than the annotation says.
TEST_F(KubeClusterTest, WhatAPodWasGivenIsNoDifferenceAndIsRepairedWhereTheWatchMissedIt) {
  Json node = FakeNode("n1", 4);
  node["metadata"]["annotations"]["berth.dev/gpu-uuids"] = "g0,g1,g2,g3";
  api_.Put(kNodes, node);
  Json pod = BoundPod("a", "n1", {0});
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", "main"},
                    {"allocatedResourcesStatus",
                     Json::array({{{"name", "nvidia.com/gpu"},
                                   {"resources", Json::array({{{"resourceID", "g2"}}})}}})}}});
  api_.Put(kPods, pod);
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits > 2; }));
  const auto gpu = [&] {
    const auto held = berth.state.FindPod("uid-a");
    return held && !held->placement.grants.empty() ? held->placement.grants[0].gpu : -1;
  };
  EXPECT_EQ(gpu(), 2);
  EXPECT_EQ(berth.kube.stats().differences_to_api, 0u);
  EXPECT_EQ(berth.kube.stats().disputed_pods, 0u);
  // As if the watch had not brought the status.
  PodBound missed{berth.state.FindPod("uid-a")->pod, {"n1", 0, 0, {{0, 1000, 81'920}}}, true};
  missed.given = std::make_shared<const GivenDevices>(GivenDevices{.ids = {"g3"}});
  const std::vector<ClusterEvent> events = {missed};
  ASSERT_TRUE(berth.state.Apply(events));
  EXPECT_EQ(gpu(), 3);
  EXPECT_TRUE(Eventually([&] { return gpu() == 2; }));
}

TEST_F(KubeClusterTest, TheAuditRepairsAGpuGrantedTwiceInMemoryAlone) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  Process berth(api_, "", [](KubeCluster::Options& options) { options.api_audit_every = 1 << 20; });
  ASSERT_TRUE(Eventually([&] { return berth.kube.stats().audits > 0; }));
  const ClusterEvent phantom =
      PodBound{{{"uid-x", "ns", "phantom"}, {}, {}, 0, ""}, {"n1", 1, 0, {{0, 1000, 81'920}}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&phantom, 1)));
  EXPECT_TRUE(Eventually([&] { return !berth.state.FindPod("uid-x"); }));
  EXPECT_TRUE(Eventually([&] { return berth.kube.stats().audit.double_grants == 0; }));
  EXPECT_FALSE(berth.WasTold("GPU 0 of node n1: ns/a, ns/phantom")) << "it never was";
}

TEST_F(KubeClusterTest, PodsThatHoldOneGpuAreNamed) {
  api_.Put(kNodes, FakeNode("n1", 4));
  api_.Put(kPods, BoundPod("a", "n1", {0}));
  api_.Put(kPods, BoundPod("b", "n1", {0, 1}));
  Process berth(api_, "");
  ASSERT_TRUE(Eventually([&] { return berth.ready.load(); }));
  // As it was given here; what an annotation alone says is not believed beside another pod.
  const ClusterEvent given = PodBound{{{"uid-b", "ns", "b"}, {}, {}, 0, ""},
                                      {"n1", 1, 0, {{0, 1000, 81'920}, {1, 1000, 81'920}}}};
  ASSERT_TRUE(berth.state.Apply(std::span(&given, 1)));
  EXPECT_TRUE(Eventually([&] { return berth.WasTold("GPU 0 of node n1: ns/a, ns/b"); }));
  EXPECT_EQ(berth.kube.stats().audit.double_grants, 1u);
}

}  // namespace
}  // namespace berth::kube::kube_cluster_test
