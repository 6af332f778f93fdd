// SPDX-License-Identifier: Apache-2.0
//
// Pods that ask for no GPU are kube-scheduler's alone: what each verb answers for them behind one.
#include <string>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::test::pass_through_test {
namespace {

// One node as it should be, one that joins, one without room by our books.
std::vector<NodeSpec> Machines() {
  NodeSpec joining = MachineWith("joining", 8);
  joining.ready = false;
  NodeSpec small = MachineWith("small", 0);
  small.cpu_milli = 100;
  return {joining, MachineWith("ready", 8), small};
}

TestService BehindScheduler(PodBinder* binder = nullptr, const std::string& profile = "best-fit") {
  return TestService(Machines(), binder, profile, true);
}

Json PodWithoutGpu(const std::string& uid) { return PodAsking(uid, {{"cpu", "1"}}); }

TEST(PassThrough, APodWithoutGpuFitsNodesThatAreNotReadyOrNotKnown) {
  const TestService service = BehindScheduler();
  const Json names = {"joining", "ready", "small", "never-seen", "joining"};
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithoutGpu("a"), names));
  EXPECT_EQ(answer["NodeNames"], names) << "not as they were sent";
  EXPECT_EQ(answer["Nodes"], nullptr);
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], Json::object());
  EXPECT_EQ(answer["Error"], "");
}

TEST(PassThrough, WholeNodesComeBackByteForByte) {
  const TestService service = BehindScheduler();
  const std::string nodes =
      R"({ "metadata":{}, "items":[{"metadata":{"name":"joining","odd":"}]\u0041"}},)"
      R"({"metadata":{"name":"never-seen"},"status":{"x":[1,2,{}]}}] })";
  const std::string pod = PodWithoutGpu("a").dump();
  const std::string answer =
      service
          .Call("POST", "/extender/filter",
                R"({"Pod":)" + pod + R"(,"Nodes": )" + nodes + R"( ,"NodeNames":null})")
          .body;
  EXPECT_EQ(answer, R"({"Nodes":)" + nodes +
                        R"(,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},)"
                        R"("Error":""})");
}

TEST(PassThrough, TheOrderOfTheKeysDoesNotMatter) {
  const TestService service = BehindScheduler();
  const std::string pod = PodWithoutGpu("a").dump();
  for (const std::string& body :
       {R"({"NodeNames":["joining","x"],"Nodes":null,"Pod":)" + pod + "}",
        R"({"Nodes":null,"Pod":)" + pod + R"(,"NodeNames":["joining","x"]})",
        R"({"Pod":)" + pod + R"(,"NodeNames":["joining","x"],"Nodes":{"items":[]}})",
        R"({"Pod":)" + pod + R"(,"Nodes":{"items":[]},"NodeNames":["joining","x"]})"}) {
    EXPECT_EQ(service.Ask("filter", body)["NodeNames"], (Json{"joining", "x"})) << body;
  }
}

TEST(PassThrough, NamesThatAreNoNamesAreStillRefused) {
  const TestService service = BehindScheduler();
  const std::string pod = PodWithoutGpu("a").dump();
  for (const char* names : {"[1]", "[\"a\",]", "[\"a\"", "[\"a\"\"b\"]", "[\"a\x01\"]", "\"a\""}) {
    EXPECT_EQ(service.StatusOf("filter",
                               R"({"Pod":)" + pod + R"(,"Nodes":null,"NodeNames":)" + names + "}"),
              400)
        << names;
  }
  // Escapes are for the long way.
  const Json answer = service.Ask(
      "filter", R"({"Pod":)" + pod + R"(,"Nodes":null,"NodeNames":["read\u0079","\u00e9"]})");
  EXPECT_EQ(answer["NodeNames"], (Json{"ready", "é"}));
}

TEST(PassThrough, APodWithGpusIsAskedAboutAsEver) {
  const TestService service = BehindScheduler();
  const Json answer = service.Ask(
      "filter", ArgsWithNames(PodWithGpus("a", 1), {"joining", "ready", "small", "never-seen"}));
  EXPECT_EQ(answer["NodeNames"], Json{"ready"});
}

TEST(PassThrough, APodThatBerthCannotReadIsRefused) {
  const TestService service = BehindScheduler();
  Json pod = PodWithoutGpu("a");
  pod["metadata"]["annotations"] = {{"berth.dev/gpu-model", "|"}};
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(pod, {"ready"}))["NodeNames"], Json::array());
}

// Without kube-scheduler nobody else looks at CPU, memory and readiness.
TEST(PassThrough, AnEmbeddedClusterDecidesAboutEveryPod) {
  const TestService service(Machines());
  const Json answer =
      service.Ask("filter", ArgsWithNames(PodWithoutGpu("a"), {"joining", "ready", "small"}));
  EXPECT_EQ(answer["NodeNames"], Json{"ready"});
}

// kube-scheduler found the victims; of CPU and memory it knows more than we do.
TEST(PassThrough, PreemptionForAPodWithoutGpuIsLeftAsItIs) {
  const TestService service = BehindScheduler();
  const Json victims = {
      {"joining", {{"Pods", {{{"UID", "v1"}}, {{"UID", "v2"}}}}, {"NumPDBViolations", 1}}},
      {"never-seen", {{"Pods", Json::array()}, {"NumPDBViolations", 0}}}};
  const Json answer = service.Ask(
      "preempt", Json{{"Pod", PodWithoutGpu("a")}, {"NodeNameToMetaVictims", victims}}.dump());
  EXPECT_EQ(answer["NodeNameToMetaVictims"], victims);
}

TEST(PassThrough, BindsAPodWithoutGpusToAnyNode) {
  ScriptedBinder binder;
  TestService service = BehindScheduler(&binder);
  for (const std::string node : {"joining", "never-seen", "small"}) {
    EXPECT_EQ(service.Place(PodWithoutGpu("to-" + node), node), "");
    // Its CPU is in the books when the watch shows it there; a reservation would need a node.
    EXPECT_FALSE(service.state().FindPod("to-" + node));
  }
  EXPECT_EQ(binder.calls(), 3);
}

TEST(PassThrough, ABindOfAPodThatWasNeverFilteredAsksTheCluster) {
  ScriptedBinder binder;
  PodRequest pod;
  pod.id = {"a", "ns", "pod-a"};
  pod.shape.cpu_milli = 1000;
  binder.truths["a"] = {pod, std::nullopt};
  TestService service = BehindScheduler(&binder);
  EXPECT_EQ(service.Ask("bind", BindingArgs("a", "joining"))["Error"], "");
  EXPECT_NE(service.Ask("bind", BindingArgs("gone", "joining"))["Error"], "");
  EXPECT_EQ(binder.calls(), 1);
}

TEST(PassThrough, ABindOfAPodThatIsBoundAlreadyIsAnsweredByWhereItIs) {
  ScriptedBinder binder([](const PodRequest&, const Placement&) {
    return Fail(Errc::kConflict, "assigned already");
  });
  PodRequest pod;
  pod.id = {"a", "ns", "pod-a"};
  binder.truths["a"] = {pod, Placement{"joining", 0, 0, {}}};
  TestService service = BehindScheduler(&binder);
  (void)service.Ask("filter", ArgsWithNames(PodWithoutGpu("a"), {"joining"}));
  EXPECT_EQ(service.Ask("bind", BindingArgs("a", "joining"))["Error"], "");
  EXPECT_NE(service.Ask("bind", BindingArgs("a", "ready"))["Error"], "");
}

}  // namespace
}  // namespace berth::test::pass_through_test
