// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/instaslice/instaslice_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace berth::wire::instaslice_json_test {
namespace {

using dialects::AllocationClaim;
using dialects::DecodeAllocationClaim;
using Object = nlohmann::json;

// As the DAS operator's documentation shows one.
Object Claim(const std::string& state) {
  return {
      {"apiVersion", "inference.redhat.com/v1alpha1"},
      {"kind", "AllocationClaim"},
      {"metadata", {{"name", "8835132e-busy-0"}, {"namespace", "das-operator"}, {"generation", 1}}},
      {"spec",
       {{"gpuUUID", "GPU-8d04"},
        {"migPlacement", {{"size", 4}, {"start", 4}}},
        {"nodename", "n1"},
        {"podRef", {{"kind", "Pod"}, {"name", "p"}, {"namespace", "ns"}}},
        {"profile", "3g.20gb"}}},
      {"status", {{"state", state}}}};
}

TEST(AllocationClaim, SaysWhichDeviceOfWhichGpuIsHeldOnWhichNode) {
  const auto claim = DecodeAllocationClaim(PaddedText(Claim("inUse").dump()));
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->namespace_name, "das-operator");
  EXPECT_EQ(claim->name, "8835132e-busy-0");
  EXPECT_EQ(claim->node, "n1");
  EXPECT_TRUE(claim->holds);
  EXPECT_EQ(claim->device, (ClaimedGpu{"das-operator/8835132e-busy-0", "8835132e-busy-0",
                                       "GPU-8d04", -1, "3g.20gb", 4}));
}

TEST(AllocationClaim, HoldsFromWhenItsNodeIsChosenUntilItsDeviceIsGone) {
  for (const auto& [state, holds] : {std::pair("", false),
                                     {"staged", false},
                                     {"created", true},
                                     {"processing", true},
                                     {"inUse", true},
                                     {"orphaned", true}}) {
    const auto claim = DecodeAllocationClaim(PaddedText(Claim(state).dump()));
    ASSERT_TRUE(claim) << state;
    EXPECT_EQ(claim->holds, holds) << state;
  }
}

TEST(AllocationClaim, OneThatHoldsSomethingSaysWhat) {
  const auto error = [](const char* key, const Object& value) {
    Object claim = Claim("created");
    claim["spec"][key] = value;
    const auto read = DecodeAllocationClaim(PaddedText(claim.dump()));
    claim["status"]["state"] = "staged";
    EXPECT_TRUE(DecodeAllocationClaim(PaddedText(claim.dump())) || value.is_number()) << key;
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(error("nodename", nullptr), "spec.nodename: want a node, got none");
  EXPECT_EQ(error("gpuUUID", ""), "spec.gpuUUID: want a UUID, got none");
  EXPECT_EQ(error("gpuUUID", 7), "spec.gpuUUID: want a text, got number");
  EXPECT_EQ(error("migPlacement", Object::object()),
            "spec.migPlacement.start: want a number, got none");
  EXPECT_TRUE(error("profile", nullptr).starts_with("spec.profile: want a MIG profile such as"));
}

TEST(AllocationClaim, WhatIsNoClaimIsAnError) {
  const auto error = [](const std::string& text) {
    const auto read = DecodeAllocationClaim(PaddedText(text));
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(error("{"), "want JSON, got something else");
  EXPECT_EQ(error("7"), "file: want an object");
  EXPECT_EQ(error("{}"), "metadata.name: want a name, got none");
  EXPECT_EQ(error(R"({"metadata":{"name":"a"},"spec":7})"), "spec: want an object, got number");
}

}  // namespace
}  // namespace berth::wire::instaslice_json_test
