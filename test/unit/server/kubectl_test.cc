// SPDX-License-Identifier: Apache-2.0
//
// Against a kubectl of the test's own: a script that notes how it was called and says what kubectl
// says.
#include "server/commands/ask_server.h"

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "test/support/read_text.h"
#include "test/support/test_certificates.h"

namespace berth::test::kubectl_test {
namespace {

class KubectlTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    setenv("PATH", (Folder() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  [[nodiscard]] std::string Folder() const {
    return std::filesystem::path(folder_.WriteText("empty", "")).parent_path();
  }
  // kubectl does that.
  void Script(const std::string& does) const {
    const std::string text = "#!/bin/sh\necho \"$@\" > " + Folder() + "/called\necho $$ > " +
                             Folder() + "/pid\n" + does + "\n";
    std::filesystem::permissions(folder_.WriteText("kubectl", text),
                                 std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string Called() const { return ReadText(Folder() + "/called"); }
  [[nodiscard]] bool Lives() const { return kill(std::stoi(ReadText(Folder() + "/pid")), 0) == 0; }

  const TemporaryFolder folder_;
  std::string path_;
};

TEST_F(KubectlTest, AProxyOfTheApiServerLeadsToTheServiceAndNowhereElse) {
  Script("echo 'Starting to serve on 127.0.0.1:4711'; exec sleep 60");
  {
    const auto tunnel = KubectlTunnel::Open({.kubeconfig = "/k", .context = "c"});
    ASSERT_TRUE(tunnel) << tunnel.error().message;
    EXPECT_EQ(tunnel->address(), "127.0.0.1:4711");
    EXPECT_EQ(tunnel->prefix(), "/api/v1/namespaces/berth-system/services/berth:debug/proxy");
    EXPECT_EQ(Called(),
              "--kubeconfig=/k --context=c proxy --port=0 --address=127.0.0.1 "
              "--accept-paths=^/api/v1/namespaces/berth-system/services/berth:debug/proxy/\n");
    EXPECT_TRUE(Lives());
  }
  EXPECT_FALSE(Lives());
}

TEST_F(KubectlTest, APortIsForwardedToThePodOfTheService) {
  Script("echo 'Forwarding from 127.0.0.1:4712 -> 8888'; exec sleep 60");
  const auto tunnel = KubectlTunnel::Open({.service = "gpu/b", .port_forward = true});
  ASSERT_TRUE(tunnel) << tunnel.error().message;
  EXPECT_EQ(tunnel->address(), "127.0.0.1:4712");
  EXPECT_EQ(tunnel->prefix(), "");
  EXPECT_EQ(Called(), "--namespace=gpu port-forward --address=127.0.0.1 service/b :debug\n");
}

TEST_F(KubectlTest, WhatDoesNotServeIsAnError) {
  Script("exit 1");
  const auto tunnel = KubectlTunnel::Open({});
  ASSERT_FALSE(tunnel);
  EXPECT_EQ(tunnel.error().message, "kubectl proxy did not start");
  EXPECT_EQ(KubectlTunnel::Open({.service = "berth"}).error().message,
            "--service: want NAMESPACE/NAME, got \"berth\"");
}

TEST_F(KubectlTest, WithoutKubectlTheAnswerSaysWhatElseWouldDo) {
  setenv("PATH", "/nonexistent", 1);
  const auto tunnel = KubectlTunnel::Open({});
  ASSERT_FALSE(tunnel);
  EXPECT_EQ(tunnel.error().message,
            "kubectl: No such file or directory; want it in PATH, or --server URL instead");
}

TEST_F(KubectlTest, WhatItPrintsHasABound) {
  Script("echo 12345; echo words >&2");
  EXPECT_EQ(KubectlPrints({.context = "c"}, {"get", "--raw", "/x"}, 6, false).value(), "12345\n");
  EXPECT_EQ(Called(), "--context=c get --raw /x\n");
  EXPECT_FALSE(KubectlPrints({}, {"get"}, 5, false));
  Script("exec yes");
  EXPECT_FALSE(KubectlPrints({}, {"get"}, 100'000, false));
  Script("echo 1; exit 1");
  EXPECT_EQ(KubectlPrints({}, {"get", "x"}, 100, false).error().message, "kubectl get x failed");
}

TEST_F(KubectlTest, TheNamespaceIsThatOfTheContext) {
  Script("printf team-a");
  EXPECT_EQ(CurrentNamespace({.context = "c"}).value(), "team-a");
  EXPECT_EQ(Called(), "--context=c config view --minify --output=jsonpath={..namespace}\n");
  Script("");
  EXPECT_EQ(CurrentNamespace({}).value(), "default");
  Script("exit 1");
  EXPECT_FALSE(CurrentNamespace({}));
}

}  // namespace
}  // namespace berth::test::kubectl_test
