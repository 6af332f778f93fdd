// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

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
  EXPECT_TRUE(claims.IsMadeFor("ns/u"));
  EXPECT_FALSE(claims.IsMadeFor("other/u")) << "anybody may say so of a pod of others";
  claims.Put({{"ns/b", {.asks = Asks("gpu")}}}, true);
  EXPECT_FALSE(claims.Find("ns/a"));
  EXPECT_FALSE(claims.IsMadeFor("ns/u"));
  EXPECT_TRUE(claims.Find("ns/b"));
}

TEST(OpenClaims, AnAllocationFromBeforeAnAnswerCountsNoMore) {
  OpenClaims claims;
  const auto show = [&claims](std::int64_t version, bool allocated) {
    claims.Put({{"ns/a", {.version = version, .allocated = allocated}}}, false);
    return claims.Find("ns/a")->allocated;
  };
  EXPECT_TRUE(show(7, true));
  claims.Outdate("ns/a", 7);
  EXPECT_TRUE(claims.Find("ns/a")->allocated) << "it is that answer";
  claims.Outdate("ns/a", 9);
  EXPECT_FALSE(claims.Find("ns/a")->allocated);
  claims.Outdate("ns/a", 8);
  EXPECT_FALSE(show(8, true));
  EXPECT_TRUE(show(9, true));
  EXPECT_TRUE(show(0, true)) << "an object without a version is believed";
}

TEST(OpenClaims, ThoseOfWhichAnAnswerIsAwaitedAreBounded) {
  OpenClaims claims;
  const auto name = [](std::size_t i) { return "ns/" + std::to_string(i); };
  for (std::size_t i = 0; i < OpenClaims::kMostAwaited; ++i) claims.Outdate(name(i), 5);
  claims.Put({{"ns/there", {.version = 1}}}, false);
  claims.Outdate("ns/there", 5);  // the others are forgotten: the watch has not shown that they are
  claims.Put({{"ns/there", {.version = 4, .allocated = true}}}, false);
  EXPECT_FALSE(claims.Find("ns/there")->allocated);
  claims.Put({{name(0), {.version = 4, .allocated = true}}}, false);
  EXPECT_TRUE(claims.Find(name(0))->allocated);
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
