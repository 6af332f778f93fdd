// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <gtest/gtest.h>

namespace berth::test::device_claim_test {
namespace {

DeviceRequest Exactly(const std::string& name, const std::string& device_class) {
  return {name,
          {{.name = {},
            .device_class = device_class,
            .selectors = {},
            .tolerations = {},
            .tolerations_json = {}}}};
}

std::vector<AllocationConfig> Configs(const DeviceClaim& claim, const std::vector<int>& wants) {
  return ConfigsOf(claim, wants, [](std::string_view name) {
    return name == "plain"
               ? std::vector<DeviceConfig>()
               : std::vector<DeviceConfig>{{{}, "{\"of\":\"" + std::string(name) + "\"}"}};
  });
}

TEST(ConfigsOf, ThatOfAClassComesOnceForItsRequestsThenThatOfTheClaim) {
  const DeviceClaim claim{{Exactly("a", "x"), Exactly("b", "plain"), Exactly("c", "x")},
                          {},
                          {{{"b"}, "{\"mine\":1}"}, {{}, "{\"all\":1}"}, {{"gone"}, "{}"}}};
  EXPECT_EQ(Configs(claim, {0, 0, 0}),
            (std::vector<AllocationConfig>{{true, {"a", "c"}, "{\"of\":\"x\"}"},
                                           {false, {"b"}, "{\"mine\":1}"},
                                           {false, {}, "{\"all\":1}"}}));
}

TEST(ConfigsOf, WhatIsForAllRequestsNamesNone) {
  const DeviceClaim claim{{Exactly("a", "x"), Exactly("b", "x")}, {}, {{{"a", "b"}, "{}"}}};
  EXPECT_EQ(Configs(claim, {0, 0}),
            (std::vector<AllocationConfig>{{true, {}, "{\"of\":\"x\"}"}, {false, {}, "{}"}}));
}

TEST(ConfigsOf, OfSeveralWishesTheOneThatWasGranted) {
  DeviceRequest either = Exactly("a", "x");
  either.first_available = true;
  either.wants[0].name = "big";
  either.wants.push_back(either.wants[0]);
  either.wants[1].name = "small";
  either.wants[1].device_class = "y";
  const DeviceClaim claim{{either, Exactly("b", "plain")},
                          {},
                          {{{"a/big"}, "{\"big\":1}"}, {{"a/small"}, "{\"small\":1}"}}};
  EXPECT_EQ(Configs(claim, {1, 0}),
            (std::vector<AllocationConfig>{{true, {"a/small"}, "{\"of\":\"y\"}"},
                                           {false, {"a/small"}, "{\"small\":1}"}}));
}

}  // namespace
}  // namespace berth::test::device_claim_test
