// SPDX-License-Identifier: Apache-2.0
//
// `berth serve` with mutual TLS while the binds of a gang are held: they take little memory, and
// others are served beside them.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/eventually.h"
#include "test/support/running_berth.h"
#include "test/support/tls_client.h"

namespace berth::test::serve_tls_test {
namespace {

constexpr int kMembers = 401;
constexpr int kGpusPerNode = 8;

std::string NodeName(int i) { return "n" + std::to_string(i); }

std::string ClusterOf(int nodes) {
  Json cluster = {{"version", 1}, {"nodes", Json::array()}};
  for (int i = 0; i < nodes; ++i) {
    cluster["nodes"].push_back({{"name", NodeName(i)},
                                {"gpu_model", "A100"},
                                {"cpu_milli", 64000},
                                {"memory_bytes", 1099511627776},
                                {"gpus", kGpusPerNode}});
  }
  return cluster.dump();
}

class ServeTls : public testing::Test {
 protected:
  static constexpr int kNodes = kMembers / kGpusPerNode + 2;

  ServeTls() {
    std::signal(SIGPIPE, SIG_IGN);  // of the clients
    const std::string files = "certificateFile: " + folder_.WriteCertificate("tls.crt", server_) +
                              ", keyFile: " + folder_.WriteKey("tls.key", server_) +
                              ", clientCaFile: " + folder_.WriteCertificate("ca.crt", ca_);
    berth_ =
        std::make_unique<Running>(folder_, ClusterOf(kNodes), "server: {tls: {" + files + "}}");
    for (int i = 0; i < kNodes; ++i) nodes_.push_back(NodeName(i));
  }

  std::unique_ptr<TlsClient> Connect() const {
    return std::make_unique<TlsClient>(static_cast<std::uint16_t>(berth_->port()), ca_, &client_);
  }

  // The answer to a request of JSON; discarded JSON where there is none.
  static Json Read(TlsClient& client) {
    constexpr std::string_view kEnd = "\r\n\r\n", kLength = "Content-Length: ";
    std::string text = client.ReadUntil(kEnd);
    const std::size_t length = text.find(kLength);
    if (length == std::string::npos) return Json::value_t::discarded;
    const std::size_t body = text.find(kEnd) + kEnd.size();
    const std::size_t size = std::stoul(text.substr(length + kLength.size()));
    for (std::string more = "?"; text.size() < body + size && !more.empty(); text += more) {
      more = client.ReadUntil("}");
    }
    return Json::parse(text.substr(body), nullptr, false);
  }

  static Json PodNamed(const std::string& name) {
    const Json asks = {{"requests", {{"nvidia.com/gpu", "1"}}}};
    return {{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", name}}},
            {"spec", {{"containers", {{{"name", "main"}, {"resources", asks}}}}}}};
  }

  static Json Member(int number) {
    Json pod = PodNamed("m" + std::to_string(number));
    pod["metadata"]["annotations"] = {{"berth.dev/gang", "big"},
                                      {"berth.dev/gang-size", std::to_string(kMembers)}};
    return pod;
  }

  // The first node on which the pod fits; "": none.
  std::string Filter(TlsClient& client, const Json& pod) const {
    const Json args = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes_}};
    client.Send(Post("/extender/filter", args.dump()));
    const Json answer = Read(client);
    if (!answer.is_object() || answer["NodeNames"].empty()) return "";
    return answer["NodeNames"][0];
  }

  static void AskToBind(TlsClient& client, const std::string& name, const std::string& node) {
    const Json args = {{"PodName", name}, {"PodNamespace", "ns"}, {"PodUID", name}, {"Node", node}};
    client.Send(Post("/extender/bind", args.dump()));
  }

  // Asks about all members, and for the binds of all but the last.
  std::vector<std::unique_ptr<TlsClient>> HoldAllButOne(TlsClient& client) {
    for (int i = 0; i < kMembers; ++i) Filter(client, Member(i));
    std::vector<std::unique_ptr<TlsClient>> held;
    for (int i = 0; i + 1 < kMembers; ++i) {
      const std::string node = Filter(client, Member(i));
      held.push_back(Connect());
      AskToBind(*held.back(), "m" + std::to_string(i), node);
    }
    EXPECT_TRUE(Eventually([&] { return Metric("berth_binds_held") == kMembers - 1; }));
    return held;
  }

  double Metric(const std::string& name) const {
    const auto client = Connect();
    client->Send(Request("GET", "/metrics", "Connection: close\r\n"));
    const std::string text = client->ReadUntil("");
    const std::size_t line = text.find("\n" + name + " ");
    return line == std::string::npos ? -1 : std::stod(text.substr(line + name.size() + 2));
  }

  TemporaryFolder folder_;
  const Identity ca_ = MakeIdentity("test-ca");
  const Identity server_ = MakeIdentity("berth", &ca_, "IP:127.0.0.1");
  const Identity client_ = MakeIdentity("kube-scheduler", &ca_);
  Json nodes_ = Json::array();
  std::unique_ptr<Running> berth_;
};

TEST_F(ServeTls, OthersAreServedBesideTheHeldBindsOfAGang) {
  const auto client = Connect();
  const auto held = HoldAllButOne(*client);
  const auto other = Connect();
  const std::string node = Filter(*other, PodNamed("other"));
  ASSERT_NE(node, "");
  AskToBind(*other, "other", node);
  EXPECT_EQ(Read(*other), Json({{"Error", ""}}));
  const std::string last = "m" + std::to_string(kMembers - 1);
  AskToBind(*client, last, Filter(*client, Member(kMembers - 1)));
  EXPECT_EQ(Read(*client), Json({{"Error", ""}}));
  for (const auto& one : held) ASSERT_EQ(Read(*one), Json({{"Error", ""}}));
}

// A bound on 1,875 of them (config_file.h) is a bound on memory: it was 90 KiB each.
TEST_F(ServeTls, AHeldBindTakesLessThan40KiB) {
  const auto client = Connect();
  for (int i = 0; i < kMembers; ++i) Filter(*client, Member(i));
  const double before = Metric("process_resident_memory_bytes");
  const auto held = HoldAllButOne(*client);
  const double after = Metric("process_resident_memory_bytes");
  ASSERT_GT(before, 0);
  EXPECT_LT((after - before) / 1024 / (kMembers - 1), 40);
}

}  // namespace
}  // namespace berth::test::serve_tls_test
