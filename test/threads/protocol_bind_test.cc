// SPDX-License-Identifier: Apache-2.0
//
// What a well-behaved extender answers: the edge cases of bind, and of being not ready, by the
// numbers under which the protocol's notes list them.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/reason.h"
#include "server/service/verbs.h"
#include "test/support/wire_fixture.h"

namespace berth::test::protocol_bind_test {
namespace {

std::vector<NodeSpec> TwoMachines() { return {MachineWith("n1", 2), MachineWith("n2", 2)}; }

// Opens once; a thread that comes before waits.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void AwaitVisitor() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int waiting_ = 0;
};

std::string BindError(const TestService& service, const std::string& uid, const std::string& node) {
  const Json answer = Json::parse(service.Answer("bind", BindingArgs(uid, node)).body);
  EXPECT_EQ(answer.size(), 1u);
  return answer["Error"];
}

TEST(ExtenderProtocol, Case42_WhileNotReadyEveryVerbIs503WithoutABody) {
  TestService service(TwoMachines());
  service.readiness().Set("the caches are cold");
  for (const char* verb : {"filter", "prioritize", "preempt", "bind"}) {
    const http::HttpResponse response = service.Call("POST", "/extender/" + std::string(verb),
                                                     ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
    EXPECT_EQ(response.status, 503) << verb;
    EXPECT_EQ(response.body, "") << verb;
  }
  service.readiness().Set(nullptr);
  EXPECT_EQ(service.StatusOf("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"})), 200);
}

TEST(ExtenderProtocol, ABindThatTimedOutInTheQueueIsRefused) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  const auto bind = [&service](Duration waited) {
    http::HttpRequest request{"POST", "/extender/bind", "", Padded(BindingArgs("1", "n1"))};
    request.began = service.clock().Now() - waited;
    std::string body;
    service.verbs().Bind(request).later(
        http::Reply([&body](const http::HttpResponse& response) { body = response.body; }));
    return Json::parse(body)["Error"].get<std::string>();
  };
  EXPECT_TRUE(bind(std::chrono::hours(1)).starts_with("bind waited for 3600 s, "));
  EXPECT_EQ(service.state().Current()->node(0).free_gpu_milli(), 2000);
  EXPECT_EQ(bind(Duration::zero()), "");
}

TEST(ExtenderProtocol, Case56_BindWithMissingFieldsIsAnErrorIn200) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  for (const char* body : {"{}", R"({"PodNamespace":"ns","PodUID":"1","Node":"n1"})",
                           R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"1"})",
                           R"({"PodName":null,"PodNamespace":null,"PodUID":null,"Node":null})"}) {
    const std::string error = service.Ask("bind", body)["Error"];
    EXPECT_TRUE(error.starts_with("bind: want PodName and Node")) << error;
  }
  EXPECT_EQ(service.FreeGpuMilli("n1"), 2000);
}

TEST(ExtenderProtocol, Case56_BindWithFieldsOfTheWrongTypeIs400) {
  const TestService service(TwoMachines());
  for (const char* body : {R"({"PodName":1,"Node":"n1"})", R"({"PodName":"p","Node":["n1"]})"}) {
    EXPECT_EQ(service.StatusOf("bind", body), 400) << body;
  }
}

TEST(ExtenderProtocol, Case57_BindOfAPodThatNoFilterNamedIsAnError) {
  TestService service(TwoMachines());
  EXPECT_EQ(BindError(service, "stranger", "n1"),
            "pod ns/pod-stranger is not known: no filter call has named it");
  EXPECT_EQ(service.FreeGpuMilli("n1"), 2000);
}

TEST(ExtenderProtocol, Case57_BindToANodeThatIsNotKnownIsAnError) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  EXPECT_EQ(BindError(service, "1", "ghost"), "node ghost is not known");
}

TEST(ExtenderProtocol, Case58_BindOfARecreatedPodIsAnErrorAndHoldsNothing) {
  TestService service(TwoMachines());
  ASSERT_EQ(service.Place(PodWithGpus("old", 1), "n1"), "");
  Json recreated = PodWithGpus("new", 1);
  recreated["metadata"]["name"] = "pod-old";
  service.Ask("filter", ArgsWithNames(recreated, {"n2"}));
  const Json body = {
      {"PodName", "pod-old"}, {"PodNamespace", "ns"}, {"PodUID", "new"}, {"Node", "n2"}};
  EXPECT_EQ(service.Ask("bind", body.dump())["Error"], "pod ns/pod-old has the UID old, not new");
  EXPECT_EQ(service.FreeGpuMilli("n2"), 2000);
  EXPECT_FALSE(service.state().FindPod("new"));
}

TEST(ExtenderProtocol, Case59_BindAgainToTheSameNodeSucceedsAndTakesNothingMore) {
  ScriptedBinder binder;
  TestService service(TwoMachines(), &binder);
  ASSERT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
  EXPECT_EQ(service.Answer("bind", BindingArgs("1", "n1")).body, R"({"Error":""})");
  EXPECT_EQ(binder.calls(), 1);
  EXPECT_EQ(service.FreeGpuMilli("n1"), 1000);
}

TEST(ExtenderProtocol, Case60_BindElsewhereNamesTheNodeThatHasThePod) {
  TestService service(TwoMachines());
  ASSERT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
  EXPECT_EQ(BindError(service, "1", "n2"), "pod is already bound to node n1");
  EXPECT_EQ(service.FreeGpuMilli("n2"), 2000);
}

TEST(ExtenderProtocol, Case61_FurtherBindsToTheSameNodeJoinTheFirst) {
  Gate gate;
  ScriptedBinder binder([&gate](const PodRequest&, const Placement&) {
    gate.Pass();
    return Status();
  });
  TestService service(TwoMachines(), &binder);
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  std::thread first([&] { EXPECT_EQ(BindError(service, "1", "n1"), ""); });
  gate.AwaitVisitor();
  std::atomic<int> started{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 6; ++i) {
    others.emplace_back([&] {
      ++started;
      EXPECT_EQ(BindError(service, "1", "n1"), "");
    });
  }
  while (started < 6) std::this_thread::yield();
  gate.Open();
  first.join();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(binder.calls(), 1);
  EXPECT_EQ(service.FreeGpuMilli("n1"), 1000);
}

// A thousand kube-schedulers that are restarted would do this.
TEST(ExtenderProtocol, AThousandBindsWaitOnTwoThreadsAndEachIsAnsweredOnce) {
  constexpr std::size_t kBinds = 1000;
  Gate gate;
  ScriptedBinder binder([&gate](const PodRequest& pod, const Placement&) {
    if (pod.id.uid == "slow") gate.Pass();
    return Status();
  });
  TestService service(TwoMachines(), &binder);
  for (const char* uid : {"slow", "quick"}) {
    service.Ask("filter", ArgsWithNames(PodWithGpus(uid, 1), {"n1"}));
  }
  std::vector<std::atomic<int>> answers(kBinds);
  std::atomic<int> succeeded{0};
  {
    WorkerPool pool(2, 10);
    service.extender().BindOn(InBackground(pool));
    for (std::atomic<int>& answered : answers) {
      http::HttpRequest request{"POST", "/extender/bind", "", Padded(BindingArgs("slow", "n1"))};
      request.began = service.clock().Now();
      service.verbs().Bind(request).later(
          http::Reply([&answered, &succeeded](const http::HttpResponse& response) {
            ++answered;
            if (response.body == R"({"Error":""})") ++succeeded;
          }));
    }
    gate.AwaitVisitor();
    EXPECT_EQ(BindError(service, "quick", "n1"), "") << "one of the two threads is free";
    EXPECT_EQ(succeeded, 0);
    gate.Open();
  }  // the process drains: what waits is carried out
  EXPECT_EQ(succeeded, static_cast<int>(kBinds));
  for (const std::atomic<int>& answered : answers) EXPECT_EQ(answered, 1);
  EXPECT_EQ(binder.calls(), 2);
  EXPECT_EQ(service.FreeGpuMilli("n1"), 0);
}

TEST(ExtenderProtocol, ABindBeyondTheQueueGets503AndCanBeRetried) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  service.extender().BindOn([](const std::function<void()>&) { return false; });
  const http::HttpResponse answer = service.Answer("bind", BindingArgs("1", "n1"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, R"({"error":"too many binds under way"})");
  service.extender().BindOn({});
  EXPECT_EQ(BindError(service, "1", "n1"), "");
}

TEST(ExtenderProtocol, ABinderThatThrowsGives500AndTheNextBindRuns) {
  Gate gate;
  std::atomic<bool> throws{true};
  ScriptedBinder binder([&](const PodRequest&, const Placement&) -> Status {
    if (!throws.exchange(false)) return {};
    gate.Pass();
    throw std::bad_alloc();
  });
  TestService service(TwoMachines(), &binder);
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  std::thread first([&] { EXPECT_EQ(service.Answer("bind", BindingArgs("1", "n1")).status, 500); });
  gate.AwaitVisitor();
  int second = 0;  // stands in line: its answer comes on the thread of the first
  http::HttpRequest request{"POST", "/extender/bind", "", Padded(BindingArgs("1", "n1"))};
  request.began = service.clock().Now();
  service.verbs().Bind(request).later(
      http::Reply([&second](const http::HttpResponse& response) { second = response.status; }));
  gate.Open();
  first.join();
  EXPECT_EQ(second, 200);
  EXPECT_EQ(binder.calls(), 1) << "it asked the cluster where the pod is";
}

TEST(ExtenderProtocol, Case61_ASecondBindToAnotherNodeIsRefusedAtOnce) {
  Gate gate;
  ScriptedBinder binder([&gate](const PodRequest&, const Placement&) {
    gate.Pass();
    return Status();
  });
  TestService service(TwoMachines(), &binder);
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1", "n2"}));
  std::thread one([&] { EXPECT_EQ(BindError(service, "1", "n1"), ""); });
  gate.AwaitVisitor();
  EXPECT_EQ(BindError(service, "1", "n2"), "pod is being bound to node n1");
  gate.Open();
  one.join();
  EXPECT_EQ(service.FreeGpuMilli("n2"), 2000);
}

TEST(ExtenderProtocol, Case61_BindsOfOtherPodsDoNotWait) {
  Gate gate;
  ScriptedBinder binder([&gate](const PodRequest& pod, const Placement&) {
    if (pod.id.uid == "slow") gate.Pass();
    return Status();
  });
  TestService service(TwoMachines(), &binder);
  service.Ask("filter", ArgsWithNames(PodWithGpus("slow", 1), {"n1"}));
  std::thread slow([&] { EXPECT_EQ(BindError(service, "slow", "n1"), ""); });
  gate.AwaitVisitor();
  EXPECT_EQ(service.Place(PodWithGpus("quick", 1), "n1"), "");
  gate.Open();
  slow.join();
  EXPECT_EQ(service.FreeGpuMilli("n1"), 0);
}

TEST(ExtenderProtocol, Case62_ABinderErrorIsReturnedAndReleasesTheReservation) {
  ScriptedBinder binder([](const PodRequest&, const Placement&) {
    return Fail(Errc::kConflict, "pod is being deleted, cannot be assigned to a host");
  });
  TestService service(TwoMachines(), &binder);
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  EXPECT_EQ(BindError(service, "1", "n1"), "pod is being deleted, cannot be assigned to a host");
  EXPECT_EQ(service.FreeGpuMilli("n1"), 2000);
}

TEST(ExtenderProtocol, Case64_BindGoesToTheNodeItNamesWhateverWasScoredBest) {
  TestService service({MachineWith("n1", 8), MachineWith("n2", 1)});
  const Json scores = service.Ask("prioritize", ArgsWithNames(PodWithGpus("1", 1), {"n1", "n2"}));
  ASSERT_NE(scores[0]["Score"], scores[1]["Score"]);
  const std::string worse = scores[0]["Score"] < scores[1]["Score"] ? "n1" : "n2";
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1", "n2"}));
  EXPECT_EQ(BindError(service, "1", worse), "");
  EXPECT_EQ(service.state().FindPod("1")->placement.node, worse);
}

TEST(ExtenderProtocol, Case64_BindToAFullNodeIsAnErrorWithTheReason) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("late", 2), {"n1"}));
  ASSERT_EQ(service.Place(PodWithGpus("early", 1), "n1"), "");
  EXPECT_EQ(BindError(service, "late", "n1"),
            "pod does not fit: node n1 " + std::string(PredicateOf(Reason::kGpusBusy)));
  EXPECT_EQ(service.FreeGpuMilli("n1"), 1000);
}

TEST(ExtenderProtocol, Case66_APodWithoutGpuIsBoundToo) {
  TestService service(TwoMachines());
  EXPECT_EQ(service.Place(PodAsking("1", {{"cpu", "500m"}}), "n1"), "");
  const auto held = service.state().FindPod("1");
  ASSERT_TRUE(held);
  EXPECT_EQ(held->placement.grants.size(), 0u);
  EXPECT_EQ(held->placement.cpu_milli, 500);
}

TEST(ExtenderProtocol, Case67_FilteringAPodAgainReplacesWhatItAsksFor) {
  TestService service(TwoMachines());
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 2), {"n1"}));
  EXPECT_EQ(service.Place(PodWithGpus("1", 1), "n2"), "");
  EXPECT_EQ(service.FreeGpuMilli("n1"), 2000);
  EXPECT_EQ(service.FreeGpuMilli("n2"), 1000);
}

TEST(ExtenderProtocol, Case72_AReservationEndsByTheSteadyClockAlone) {
  TestService* running = nullptr;
  std::size_t early = 9, late = 9;
  ScriptedBinder binder([&](const PodRequest&, const Placement&) {
    running->clock().Advance(std::chrono::milliseconds(29'999));
    early = running->state().Overdue(running->clock().Now()).size();
    running->clock().Advance(std::chrono::milliseconds(1));
    late = running->state().Overdue(running->clock().Now()).size();
    return Fail(Errc::kUnavailable, "too slow");
  });
  TestService service(TwoMachines(), &binder);
  running = &service;
  service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"n1"}));
  EXPECT_EQ(BindError(service, "1", "n1"), "too slow");
  EXPECT_EQ(early, 0u);
  EXPECT_EQ(late, 1u);
}

}  // namespace
}  // namespace berth::test::protocol_bind_test
