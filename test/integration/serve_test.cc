// SPDX-License-Identifier: Apache-2.0
//
// `berth serve` as a process: its address on stdout, the verbs over a socket, a drain at the end.
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/raw_client.h"
#include "test/support/test_certificates.h"

namespace berth::test {
namespace {

using Json = nlohmann::json;

constexpr char kCluster[] = R"({"version":1,"nodes":[
  {"name":"n1","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":2},
  {"name":"n2","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4}]})";

std::string ArgsFor(const std::string& uid, int gpus) {
  const Json pod = {
      {"metadata", {{"name", "pod-" + uid}, {"namespace", "ns"}, {"uid", uid}}},
      {"spec",
       {{"containers",
         {{{"name", "main"},
           {"resources", {{"requests", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}}};
  return R"({"Pod":)" + pod.dump() + R"(,"Nodes":null,"NodeNames":["n1","n2"]})";
}

// A running berth on a port of its own.
class Running {
 public:
  Running(const TemporaryFolder& folder, const std::string& cluster, const std::string& config = "")
      : process_("berth", {"serve", "--listen", "127.0.0.1:0", "--cluster",
                           folder.WriteText("cluster.json", cluster), "--config",
                           folder.WriteText("berth.yaml", config)}) {
    constexpr std::string_view kAnnounced = "berth: listening on http://127.0.0.1:";
    if (!process_.AwaitOut(kAnnounced)) {
      process_.Wait();
      ADD_FAILURE() << "it does not listen: " << process_.err();
      return;
    }
    port_ = static_cast<std::uint16_t>(std::stoi(process_.out().substr(kAnnounced.size())));
  }

  [[nodiscard]] RawClient Connect() const { return RawClient("127.0.0.1", port_); }
  ChildProcess& process() { return process_; }

 private:
  ChildProcess process_;
  std::uint16_t port_ = 0;
};

Json Ask(RawClient& client, const std::string& verb, const std::string& body) {
  client.Send(Post("/extender/" + verb, body));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200) << response.body;
  return Json::parse(response.body, nullptr, false);
}

std::string Get(RawClient& client, const std::string& path) {
  client.Send(Request("GET", path));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200) << path;
  return response.body;
}

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

TEST(Serve, SigtermAndSigintEndItWithSuccess) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TemporaryFolder folder;
    Running berth(folder, kCluster);
    berth.process().Signal(signal);
    EXPECT_EQ(berth.process().Wait(), 0) << signal;
    EXPECT_FALSE(berth.Connect().connected());
  }
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
}  // namespace berth::test
