// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/open_claims.h"

#include <gtest/gtest.h>

namespace berth::test::open_claims_test {
namespace {

std::shared_ptr<const DeviceClaim> Asks(const std::string& device_class, std::size_t size = 0) {
  DeviceWant want{.name = {},
                  .device_class = device_class,
                  .selectors = {std::string(size, 'x')},
                  .tolerations = {},
                  .tolerations_json = {}};
  return std::make_shared<const DeviceClaim>(DeviceClaim{{{"r", {want}}}});
}

TEST(OpenClaims, ClaimsThatAskForTheSameShareIt) {
  OpenClaims claims;
  claims.Put({{"ns/a", {.asks = Asks("gpu")}}, {"ns/b", {.asks = Asks("gpu")}}}, false);
  const std::size_t once = claims.bytes();
  claims.Put({{"ns/c", {.asks = Asks("gpu")}}}, false);
  EXPECT_EQ(claims.bytes(), once);
  EXPECT_EQ(claims.Find("ns/a")->asks, claims.Find("ns/c")->asks);
  claims.Put({{"ns/d", {.asks = Asks("mig")}}}, false);
  EXPECT_GT(claims.bytes(), once);
  claims.Remove("ns/d");
  EXPECT_EQ(claims.bytes(), once);
}

TEST(OpenClaims, OfAnAllocatedClaimThePlaceIsKept) {
  OpenClaims claims;
  claims.Put({{"ns/a", {.asks = Asks("gpu")}}}, false);
  claims.Put({{"ns/a", {.allocated = true, .node = "n"}}}, false);
  EXPECT_TRUE(claims.Find("ns/a")->allocated);
  EXPECT_EQ(claims.Find("ns/a")->node, "n");
  EXPECT_EQ(claims.Find("ns/a")->asks, nullptr);
  EXPECT_EQ(claims.bytes(), 0u);
  EXPECT_FALSE(claims.Find("ns/b"));
}

TEST(OpenClaims, AListReplacesAll) {
  OpenClaims claims;
  claims.Put({{"ns/a", {.asks = Asks("gpu")}}, {"ns/m", {.allocated = true, .made_for = "u"}}},
             false);
  EXPECT_TRUE(claims.IsMadeFor("u"));
  claims.Put({{"ns/b", {.asks = Asks("gpu")}}}, true);
  EXPECT_FALSE(claims.Find("ns/a"));
  EXPECT_FALSE(claims.IsMadeFor("u"));
  EXPECT_TRUE(claims.Find("ns/b"));
}

TEST(OpenClaims, WhatTheyAskForIsBounded) {
  OpenClaims claims(10'000);
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    claims.Put({{"ns/" + number, {.asks = Asks(number, 2000)}}}, false);
  }
  EXPECT_LE(claims.bytes(), 10'000u);
  EXPECT_NE(claims.Find("ns/0")->asks, nullptr);
  ASSERT_TRUE(claims.Find("ns/9")) << "it is there";
  EXPECT_EQ(claims.Find("ns/9")->asks, nullptr);
  for (int i = 0; i < 10; ++i) claims.Remove("ns/" + std::to_string(i));
  EXPECT_EQ(claims.bytes(), 0u);
}

}  // namespace
}  // namespace berth::test::open_claims_test
