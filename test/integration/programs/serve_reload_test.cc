// SPDX-License-Identifier: Apache-2.0
//
// `berth serve` while its configuration changes: every request is answered, and what is in use
// shows in /metrics.
#include <signal.h>

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/config_places.h"
#include "test/support/eventually.h"
#include "test/support/running_berth.h"

namespace berth::test::serve_reload_test {
namespace {

constexpr char kTwoNodes[] = R"({"version":1,"nodes":[
  {"name":"n1","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4},
  {"name":"n2","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":2}]})";
// A pod with one GPU goes to n2, to n1.
constexpr char kBestFit[] = "profile: best-fit\nprofiles: [{name: best-fit, ties: fullest}]\n";
constexpr char kFirstFit[] = "profile: first-fit\nprofiles: [{name: first-fit, ties: first}]\n";

// What a client sees of a running berth.
class Watched {
 public:
  explicit Watched(const std::string& config_file)
      : berth_(folder_.WriteText("cluster.json", kTwoNodes), config_file),
        client_(berth_.Connect()) {}

  ChildProcess& process() { return berth_.process(); }
  [[nodiscard]] RawClient Connect() const { return berth_.Connect(); }

  // As kube-scheduler asks: first which nodes fit, then which of them is best.
  std::string BestNode() {
    Ask(client_, "filter", ArgsFor("1", 1));
    const Json scores = Ask(client_, "prioritize", ArgsFor("1", 1));
    for (const Json& score : scores) {
      if (score["Score"] == 10) return score["Host"];
    }
    return "none";
  }
  bool Shows(const std::string& line) {
    return ("\n" + Get(client_, "/metrics")).find("\n" + line + "\n") != std::string::npos;
  }
  bool ComesToShow(const std::string& line) {
    return Eventually([&] { return Shows(line); });
  }
  std::string Hash() {
    const std::string text = Get(client_, "/metrics");
    constexpr std::string_view kStart = "\nberth_config_info{hash=\"";
    const std::size_t at = text.find(kStart);
    return at == std::string::npos ? "" : text.substr(at + kStart.size(), 12);
  }

 private:
  const TemporaryFolder folder_;
  Running berth_;
  RawClient client_;
};

TEST(ServeReload, AMountedConfigMapChangesWhatIsDecided) {
  MountedConfig config(kBestFit);
  Watched berth(config.path());
  EXPECT_EQ(berth.BestNode(), "n2");
  const std::string hash = berth.Hash();
  EXPECT_EQ(hash.size(), 12u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << hash;
  config.Publish(kFirstFit);
  EXPECT_TRUE(berth.ComesToShow("berth_config_reloads_total{result=\"applied\"} 1"));
  EXPECT_EQ(berth.BestNode(), "n1");
  EXPECT_NE(berth.Hash(), hash);
  EXPECT_TRUE(berth.Shows("berth_config_decisions_changed_ratio 1"));
  config.Publish(kBestFit);
  EXPECT_TRUE(berth.ComesToShow("berth_config_reloads_total{result=\"applied\"} 2"));
  EXPECT_EQ(berth.BestNode(), "n2");
  EXPECT_EQ(berth.Hash(), hash);
  EXPECT_TRUE(berth.process().AwaitErr("\"event\":\"config_applied\""));
}

TEST(ServeReload, ARefusedConfigurationKeepsTheLastGoodOne) {
  const OrdinaryConfig config(kBestFit);
  Watched berth(config.path());
  const std::string hash = berth.Hash();
  EXPECT_TRUE(berth.Shows("berth_config_reload_failed 0"));
  config.Edit(kFirstFit + std::string("server:\n  threads: none\n"));
  EXPECT_TRUE(berth.ComesToShow("berth_config_reload_failed 1"));
  EXPECT_EQ(berth.Hash(), hash);
  EXPECT_EQ(berth.BestNode(), "n2");
  EXPECT_TRUE(berth.process().AwaitErr(config.path() + ":4: server.threads: want an integer"));
  config.Remove();
  EXPECT_TRUE(berth.ComesToShow("berth_config_reloads_total{result=\"refused\"} 2"));
  EXPECT_EQ(berth.BestNode(), "n2");
  config.Replace(kFirstFit + std::string("server:\n  threads: 9\n"));
  EXPECT_TRUE(berth.ComesToShow("berth_config_reload_failed 0"));
  EXPECT_EQ(berth.BestNode(), "n1");
  EXPECT_TRUE(berth.Shows("berth_config_needs_restart 1"));
  EXPECT_TRUE(berth.process().AwaitErr("\"settings\":\"server.threads\""));
}

TEST(ServeReload, NoRequestFailsWhileConfigurationsChange) {
  MountedConfig config(kBestFit);
  Watched berth(config.path());
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0};
  std::thread load([&] {
    RawClient client = berth.Connect();
    for (int i = 0; !stop; ++i) {
      const std::string args = ArgsFor(std::to_string(i), 1 + i % 4);
      for (const char* path : {"/extender/filter", "/extender/prioritize"}) {
        client.Send(Post(path, args));
        const RawResponse response = client.Read();
        ASSERT_EQ(response.status, 200) << path << response.body;
        ASSERT_NE(response.body.find("n2"), std::string::npos) << response.body;
        ++answered;
      }
    }
  });
  const char* const kTexts[] = {kFirstFit, "profile: [", "profile: fragmentation-gradient\n", ""};
  for (int i = 0; i < 6; ++i) {
    const bool good = i % 2 == 0;
    config.Publish(kTexts[i % 4]);
    EXPECT_TRUE(
        berth.ComesToShow(good ? "berth_config_reload_failed 0" : "berth_config_reload_failed 1"));
    if (good) {
      EXPECT_TRUE(berth.ComesToShow("berth_config_reloads_total{result=\"applied\"} " +
                                    std::to_string(i / 2 + 1)));
    }
    const int before = answered;
    EXPECT_TRUE(Eventually([&] { return answered > before + 10; }));
  }
  stop = true;
  load.join();
  EXPECT_EQ(berth.BestNode(), "n1");  // the last good one: first-fit
  berth.process().Signal(SIGTERM);
  EXPECT_EQ(berth.process().Wait(), 0);
}

}  // namespace
}  // namespace berth::test::serve_reload_test
