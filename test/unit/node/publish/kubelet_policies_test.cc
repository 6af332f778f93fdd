// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_annotations.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::test::kubelet_policies_test {
namespace {

using node::KubeletAnnotation;
using node::KubeletPolicies;
using node::PoliciesOfConfigFile;
using node::PoliciesOfConfigz;

TEST(KubeletPolicies, AreThoseOfConfigz) {
  const auto policies = PoliciesOfConfigz(
      R"({"kubeletconfig":{"topologyManagerPolicy":"single-numa-node",
          "topologyManagerScope":"pod","cpuManagerPolicy":"static","maxPods":110}})");
  ASSERT_TRUE(policies) << policies.error().message;
  EXPECT_EQ(*policies, (KubeletPolicies{"single-numa-node", "pod", "static"}));
}

TEST(KubeletPolicies, OfSomethingElseAreAnError) {
  EXPECT_FALSE(PoliciesOfConfigz("Forbidden"));
  EXPECT_FALSE(PoliciesOfConfigz("[]"));
  EXPECT_FALSE(PoliciesOfConfigz(R"({"kubeletconfig":1})"));
}

TEST(KubeletPolicies, ThatAreNoWordsAreNotPassedOn) {
  const auto policies = PoliciesOfConfigz(
      R"({"kubeletconfig":{"topologyManagerPolicy":"a b","topologyManagerScope":7,)"
      R"("cpuManagerPolicy":")" +
      std::string(41, 'x') + R"("}})");
  ASSERT_TRUE(policies);
  EXPECT_EQ(*policies, KubeletPolicies());
}

TEST(KubeletPolicies, OfTheConfigurationFileAreItsTopLevelsOrTheDefaults) {
  EXPECT_EQ(PoliciesOfConfigFile("kind: KubeletConfiguration\n"
                                 "topologyManagerPolicy: \"restricted\"  # for DPDK\n"
                                 "nested:\n  topologyManagerScope: pod\n"
                                 "cpuManagerPolicy: static"),
            (KubeletPolicies{"restricted", "container", "static"}));
  EXPECT_EQ(PoliciesOfConfigFile(""), (KubeletPolicies{"none", "container", "none"}));
  EXPECT_EQ(PoliciesOfConfigFile("topologyManagerPolicyOptions:\n  x: y\n"),
            (KubeletPolicies{"none", "container", "none"}));
}

TEST(KubeletPolicies, AreAskedForAtAddressesOfBothFamilies) {
  using node::KubeletUrl;
  EXPECT_EQ(KubeletUrl("https://10.0.0.7:10250"), "https://10.0.0.7:10250");
  EXPECT_EQ(KubeletUrl("https://fd00::7:10250"), "https://[fd00::7]:10250");
  EXPECT_EQ(KubeletUrl("https://[fd00::7]:10250"), "https://[fd00::7]:10250");
  EXPECT_EQ(KubeletUrl("https://node"), "https://node");
  EXPECT_EQ(KubeletUrl(""), "");
}

TEST(KubeletPolicies, AreAnAnnotationOfWhatIsKnown) {
  EXPECT_EQ(
      KubeletAnnotation({"restricted", "", "static"}, true),
      R"({"topologyManagerPolicy":"restricted","cpuManagerPolicy":"static","numa":"lifted"})");
  EXPECT_EQ(KubeletAnnotation({}, false), "");
}

}  // namespace
}  // namespace berth::test::kubelet_policies_test
