// SPDX-License-Identifier: Apache-2.0
//
// `berth serve` as a process: its address on stdout, the verbs over a socket, a drain at the end.
#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/eventually.h"
#include "test/support/running_berth.h"

namespace berth::test::serve_test {
namespace {

TEST(Serve, AnnouncesItsAddressAndNothingElseOnStdout) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster);
  berth.process().Signal(SIGTERM);
  EXPECT_EQ(berth.process().Wait(), 0);
  const std::string& out = berth.process().out();
  EXPECT_TRUE(out.starts_with("berth: listening on http://127.0.0.1:")) << out;
  EXPECT_EQ(out.find('\n'), out.size() - 1) << out;
}

TEST(Serve, FiltersPrioritizesAndBindsOverASocket) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster);
  RawClient client = berth.Connect();
  EXPECT_EQ(Get(client, "/readyz"), "ok\n");
  const Json passed = Ask(client, "filter", ArgsFor("1", 3));
  EXPECT_EQ(passed["NodeNames"], Json::array({"n2"}));
  const Json scores = Ask(client, "prioritize", ArgsFor("1", 3));
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[1], Json({{"Host", "n2"}, {"Score", 10}}));
  const std::string bind = R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"1","Node":"n2"})";
  EXPECT_EQ(Ask(client, "bind", bind), Json({{"Error", ""}}));
  EXPECT_EQ(Ask(client, "filter", ArgsFor("2", 3))["NodeNames"], Json::array());
  EXPECT_NE(Get(client, "/metrics").find("berth_gpus_idle{model=\"A100\"} 3"), std::string::npos);
  EXPECT_TRUE(berth.process().AwaitErr("\"event\":\"pod_bound\""));
}

TEST(Serve, ItsLogIsJsonLines) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster, "logLevel: debug");
  RawClient client = berth.Connect();
  Ask(client, "filter", ArgsFor("1", 1));
  berth.process().Signal(SIGTERM);
  EXPECT_EQ(berth.process().Wait(), 0);
  std::vector<std::string> events;
  std::istringstream log(berth.process().err());
  for (std::string line; std::getline(log, line);) {
    const Json parsed = Json::parse(line, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << line;
    events.push_back(parsed["event"]);
  }
  EXPECT_EQ(events, (std::vector<std::string>{"cluster_loaded", "listening", "decision", "draining",
                                              "stopped"}));
}

TEST(Serve, ItsSnapshotStartsAnotherOneWithTheSameState) {
  const TemporaryFolder folder;
  std::string snapshot;
  {
    Running berth(folder, kCluster);
    RawClient client = berth.Connect();
    Ask(client, "filter", ArgsFor("1", 2));
    Ask(client, "bind", R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"1","Node":"n1"})");
    snapshot = Get(client, "/debug/snapshot");
  }
  Running again(folder, snapshot);
  RawClient client = again.Connect();
  EXPECT_EQ(Get(client, "/debug/snapshot"), snapshot);
  EXPECT_EQ(Ask(client, "filter", ArgsFor("2", 1))["NodeNames"], Json::array({"n2"}));
  EXPECT_EQ(
      Ask(client, "bind", R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"1","Node":"n1"})"),
      Json({{"Error", ""}}));
}

TEST(Serve, TakesTheNodesOfKubectlToo) {
  const TemporaryFolder folder;
  Running berth(folder, R"({"apiVersion":"v1","kind":"List","items":[{"kind":"Node","metadata":
      {"name":"n1"},"status":{"allocatable":{"cpu":"8","memory":"1Gi","nvidia.com/gpu":"1"}}}]})");
  RawClient client = berth.Connect();
  EXPECT_EQ(Ask(client, "filter", ArgsFor("1", 1))["NodeNames"], Json::array({"n1"}));
}

TEST(Serve, DebugPagesCanBeSwitchedOff) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster, "server: {debugListen: \"off\"}");
  RawClient client = berth.Connect();
  for (const char* path : {"/debug/snapshot", "/"}) {
    client.Send(Request("GET", path));
    EXPECT_EQ(client.Read().status, 404) << path;
  }
  Get(client, "/metrics");
}

TEST(Serve, SigtermSigintAndSigquitEndItWithSuccessAfterADrain) {
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT}) {
    const TemporaryFolder folder;
    Running berth(folder, kCluster);
    berth.process().Signal(signal);
    EXPECT_EQ(berth.process().Wait(), 0) << signal;
    EXPECT_NE(berth.process().err().find("\"event\":\"stopped\""), std::string::npos) << signal;
    EXPECT_FALSE(berth.Connect().connected());
  }
}

TEST(Serve, OtherSignalsDoNotEndItAndHangupLooksAtTheConfiguration) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
                           SIGXFSZ, SIGSTKFLT, SIGRTMIN, SIGRTMAX, SIGHUP}) {
    berth.process().Signal(signal);
  }
  EXPECT_TRUE(berth.process().AwaitErr("\"event\":\"hangup\""));
  RawClient client = berth.Connect();
  EXPECT_EQ(Get(client, "/readyz"), "ok\n");
  berth.process().Signal(SIGTERM);
  EXPECT_EQ(berth.process().Wait(), 0);
}

// Half-sent bodies for which there is no memory cost their connections; what is given back is there
// for others, in the threads that answer and in the one that writes pages. Which threads have
// allocated before differs from start to start, hence several.
TEST(Serve, MoreThanItHasMemoryForEndsConnectionsAndNotTheProcess) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  for (const std::size_t more : {8 * kMiB, 8 * kMiB, 8 * kMiB, 8 * kMiB, 40 * kMiB}) {
    const TemporaryFolder folder;
    Running berth(folder, kCluster);
    berth.process().Signal(SIGHUP);  // it is looked for once all threads are there
    EXPECT_TRUE(berth.process().AwaitErr("\"event\":\"hangup\""));
    berth.process().LimitMemory(more);
    const std::string head = Request("POST", "/extender/filter", "Content-Length: 900000\r\n");
    const std::string part(100'000, 'x');
    {
      std::vector<RawClient> clients;
      for (int i = 0; i < 1'500; ++i) {
        clients.push_back(berth.Connect());
        if (clients.back().Send(head)) clients.back().Send(part);
      }
    }
    for (const char* path : {"/readyz", "/metrics"}) {
      EXPECT_TRUE(Eventually([&berth, path] {
        RawClient client = berth.Connect();
        client.Send(Request("GET", path));
        return client.Read().status == 200;
      })) << path
          << " with " << more << " bytes more";
    }
    berth.process().Signal(SIGTERM);
    EXPECT_EQ(berth.process().Wait(), 0) << berth.process().err();
  }
}

TEST(Serve, NamesThatNoObjectHasAreRefusedInFewWords) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster);
  RawClient client = berth.Connect();
  const std::string name(10'000'000, 'n');
  for (const char* field : {"PodName", "PodNamespace", "PodUID", "Node"}) {
    Json bind = {{"PodName", "p"}, {"PodNamespace", "ns"}, {"PodUID", "u"}, {"Node", "n1"}};
    bind[field] = name;
    client.Send(Post("/extender/bind", bind.dump()));
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 400) << field;
    EXPECT_LT(response.body.size(), 2000u) << field;
  }
  client.Send(Post("/extender/filter", ArgsFor(name, 1)));
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_NE(Get(client, "/metrics").find("berth_held_bytes{store=\"pending_pods\"} 0\n"),
            std::string::npos);
}

// More than the pipe and the queue hold is logged, and nobody reads it.
TEST(Serve, AnswersAndEndsWhereNobodyReadsItsLog) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster, "logLevel: debug");
  RawClient client = berth.Connect();
  const auto dropped = [&client] {
    return Get(client, "/metrics").find("\nberth_log_lines_dropped_total 0\n") == std::string::npos;
  };
  const std::string args = ArgsFor(std::string(200, 'u'), 1);  // long lines
  for (int i = 0; i < 50'000 && !(i % 100 == 99 && dropped()); ++i) {
    Ask(client, "filter", args);
  }
  EXPECT_TRUE(dropped());
  std::vector<RawClient> more;
  for (int i = 0; i < 8; ++i) {
    more.push_back(berth.Connect());
    EXPECT_EQ(Ask(more.back(), "filter", args)["NodeNames"].size(), 2u);
  }
  berth.process().Signal(SIGTERM);
  EXPECT_TRUE(client.ReachesEnd()) << "it drains, although nobody reads its log";
  EXPECT_EQ(berth.process().Wait(), 0);
}

TEST(Serve, WhileItDrainsOpenConnectionsAreAnsweredAndToldToClose) {
  const TemporaryFolder folder;
  Running berth(folder, kCluster, "server: {drainSeconds: 60}");
  RawClient client = berth.Connect();
  Get(client, "/readyz");
  berth.process().Signal(SIGTERM);
  RawResponse response;
  do {  // the signal takes effect between two of them
    client.Send(Post("/extender/filter", ArgsFor("1", 1)));
    response = client.Read();
    ASSERT_EQ(response.status, 200);
  } while (response.Field("Connection") != "close");
  EXPECT_EQ(Json::parse(response.body)["NodeNames"], Json::array({"n1", "n2"}));
  EXPECT_TRUE(client.ReachesEnd());
  EXPECT_EQ(berth.process().Wait(), 0);
}

}  // namespace
}  // namespace berth::test::serve_test
