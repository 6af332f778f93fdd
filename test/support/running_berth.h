// SPDX-License-Identifier: Apache-2.0
//
// What the tests of `berth serve` as a process share: a small cluster, a pod, a running berth and
// how to ask it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/raw_client.h"
#include "test/support/test_certificates.h"

namespace berth::test {

using Json = nlohmann::json;

inline constexpr char kCluster[] = R"({"version":1,"nodes":[
  {"name":"n1","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":2},
  {"name":"n2","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4}]})";

inline std::string ArgsFor(const std::string& uid, int gpus) {
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
      : Running(folder.WriteText("cluster.json", cluster), folder.WriteText("berth.yaml", config)) {
  }
  Running(const std::string& cluster_file, const std::string& config_file)
      : process_("berth", {"serve", "--listen", "127.0.0.1:0", "--cluster", cluster_file,
                           "--config", config_file}) {
    constexpr std::string_view kAddress = "://127.0.0.1:";
    if (!process_.AwaitOut("berth: listening on http")) {
      process_.Wait();
      ADD_FAILURE() << "it does not listen: " << process_.err();
      return;
    }
    const std::size_t port = process_.out().find(kAddress) + kAddress.size();
    port_ = static_cast<std::uint16_t>(std::stoi(process_.out().substr(port)));
  }

  [[nodiscard]] RawClient Connect() const { return RawClient("127.0.0.1", port_); }
  [[nodiscard]] int port() const { return port_; }
  ChildProcess& process() { return process_; }

 private:
  ChildProcess process_;
  std::uint16_t port_ = 0;
};

inline Json Ask(RawClient& client, const std::string& verb, const std::string& body) {
  client.Send(Post("/extender/" + verb, body));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200) << response.body;
  return Json::parse(response.body, nullptr, false);
}

inline std::string Get(RawClient& client, const std::string& path) {
  client.Send(Request("GET", path));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 200) << path;
  return response.body;
}

}  // namespace berth::test
