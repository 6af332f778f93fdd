// SPDX-License-Identifier: Apache-2.0
#include "base/dns_name.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::dns_name_test {
namespace {

TEST(DnsName, ALabelIsOfSmallLettersDigitsAndInnerDashes) {
  for (const char* name : {"a", "0", "kube-system", "a--b", "x9"}) EXPECT_TRUE(IsDnsLabel(name));
  for (const char* name :
       {"", "-", "-a", "a-", "A", "a.b", "a_b", "a/b", "a b", "\xc3\xa4", "%2e"}) {
    EXPECT_FALSE(IsDnsLabel(name)) << name;
  }
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
}

TEST(DnsName, AFullNameHasTheNamespaceInFront) {
  EXPECT_EQ(FullName("ns", "p"), "ns/p");
  EXPECT_EQ(FullName("", "p"), "/p");
}

TEST(DnsName, ASubdomainIsOfLabelsAndDots) {
  for (const char* name : {"a", "a.b", "ip-10-0-0-1.eu-west-1.compute.internal", "0.1"}) {
    EXPECT_TRUE(IsDnsSubdomain(name)) << name;
  }
  for (const char* name :
       {"", ".", "..", "a.", ".a", "a..b", "a.-b", "../a", "a/b", "a?b", "a#b"}) {
    EXPECT_FALSE(IsDnsSubdomain(name)) << name;
  }
  EXPECT_TRUE(IsDnsSubdomain(std::string(253, 'a')));
  EXPECT_FALSE(IsDnsSubdomain(std::string(254, 'a')));
}

}  // namespace
}  // namespace berth::dns_name_test
