// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/claim_json.h"

#include "test/support/wire_fixture.h"

namespace berth::wire::claim_json_test {
namespace {

using dialects::DecodeOpenClaim;
using dialects::EncodeAllocationPatch;
using dialects::EncodeFinalizerPatch;
using dialects::OpenClaim;
using dialects::ProfileIn;
using test::Json;

Json Cel(const std::string& expression) { return {{"cel", {{"expression", expression}}}}; }

// As the API server has it, defaults filled in.
Json Claim() {
  const Json exactly = {
      {"deviceClassName", "mig.nvidia.com"},
      {"selectors", Json::array({Cel("device.attributes['gpu.nvidia.com'].profile == '1g.5gb'")})},
      {"allocationMode", "ExactCount"},
      {"count", 1}};
  return {
      {"kind", "ResourceClaim"},
      {"apiVersion", "resource.k8s.io/v1"},
      {"metadata", {{"name", "c"}, {"namespace", "ns"}, {"uid", "u"}, {"resourceVersion", "7"}}},
      {"spec",
       {{"devices", {{"requests", Json::array({{{"name", "gpu"}, {"exactly", exactly}}})}}}}},
      {"status", Json::object()}};
}
Json& Exactly(Json& claim) { return claim["spec"]["devices"]["requests"][0]["exactly"]; }

Result<OpenClaim> Decode(const Json& claim) { return DecodeOpenClaim(test::Padded(claim.dump())); }
std::string ObstacleOf(const Json& claim) {
  const auto decoded = Decode(claim);
  return decoded ? std::string(decoded->obstacle) : decoded.error().message;
}

TEST(ClaimJson, AClaimOfOneMigDeviceOfAProfileIsRead) {
  Json json = Claim();
  json["metadata"]["finalizers"] = Json::array({"x/y"});
  const auto claim = Decode(json);
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->obstacle, "");
  EXPECT_EQ(claim->namespace_name, "ns");
  EXPECT_EQ(claim->name, "c");
  EXPECT_EQ(claim->uid, "u");
  EXPECT_EQ(claim->resource_version, "7");
  EXPECT_EQ(claim->finalizers, std::vector<std::string>{"x/y"});
  EXPECT_FALSE(claim->has_finalizer());
  EXPECT_FALSE(claim->allocated);
  EXPECT_EQ(claim->request, "gpu");
  EXPECT_EQ(MigProfileName(claim->profile), "1g.5gb");
  json["status"]["allocation"] = Json::object();
  EXPECT_TRUE(Decode(json)->allocated);
}

TEST(ClaimJson, AnythingMoreIsAnObstacle) {
  const std::string not_one_device = "its request is not for exactly one device";
  const std::string more =
      "it asks for more than a device: constraints, configuration, tolerations, capacity";
  const std::string no_profile = "its selectors are not exactly one that names the MIG profile";
  Json claim = Claim();
  Exactly(claim)["count"] = 2;
  EXPECT_EQ(ObstacleOf(claim), not_one_device);
  claim = Claim();
  Exactly(claim)["allocationMode"] = "All";
  EXPECT_EQ(ObstacleOf(claim), not_one_device);
  claim = Claim();
  claim["spec"]["devices"]["requests"][0].erase("exactly");
  claim["spec"]["devices"]["requests"][0]["firstAvailable"] = Json::array();
  EXPECT_EQ(ObstacleOf(claim), not_one_device);
  claim = Claim();
  claim["spec"]["devices"]["requests"].push_back(claim["spec"]["devices"]["requests"][0]);
  EXPECT_EQ(ObstacleOf(claim), "it does not have exactly one request");
  claim = Claim();
  Exactly(claim)["deviceClassName"] = "gpu.nvidia.com";
  EXPECT_EQ(ObstacleOf(claim), "its request is not of the class mig.nvidia.com");
  for (const char* key : {"tolerations", "capacity"}) {
    claim = Claim();
    Exactly(claim)[key] = Json::object();
    EXPECT_EQ(ObstacleOf(claim), more) << key;
  }
  for (const char* key : {"constraints", "config"}) {
    claim = Claim();
    claim["spec"]["devices"][key] = Json::array();
    EXPECT_EQ(ObstacleOf(claim), more) << key;
  }
  claim = Claim();
  Exactly(claim)["adminAccess"] = true;
  EXPECT_EQ(ObstacleOf(claim), more);
  claim = Claim();
  Exactly(claim).erase("selectors");
  EXPECT_EQ(ObstacleOf(claim), no_profile);
  claim = Claim();
  Exactly(claim)["selectors"].push_back(Cel("true"));
  EXPECT_EQ(ObstacleOf(claim), no_profile);
  claim = Claim();
  claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(ObstacleOf(claim), "it is being deleted");
}

TEST(ClaimJson, ProfilesAreReadFromOneFormOfCelAlone) {
  for (const char* text : {"device.attributes['gpu.nvidia.com'].profile == '3g.20gb'",
                           "device.attributes[\"gpu.nvidia.com\"].profile=='3g.20gb'",
                           " device.attributes[ 'gpu.nvidia.com' ].profile ==\n\"3g.20gb\" "}) {
    EXPECT_EQ(ProfileIn(text), "3g.20gb") << text;
  }
  for (const char* text : {"", "true", "device.attributes['gpu.nvidia.com'].profile != '3g.20gb'",
                           "device.attributes['gpu.nvidia.com'].profile == '3g.20gb' || true",
                           "!device.attributes['gpu.nvidia.com'].profile == '3g.20gb'",
                           "device.attributes['other.com'].profile == '3g.20gb'",
                           "device.attributes['gpu.nvidia.com'].type == 'mig'",
                           "device.attributes['gpu.nvidia.com'].profile == '3g.20gb",
                           "device.attributes['gpu.nvidia.com'].profile == device.x"}) {
    EXPECT_EQ(ProfileIn(text), "") << text;
  }
}

TEST(ClaimJson, WhatIsNoClaimIsAnError) {
  for (const char* key : {"name", "uid", "resourceVersion"}) {
    Json claim = Claim();
    claim["metadata"].erase(key);
    EXPECT_FALSE(Decode(claim)) << key;
  }
  Json claim = Claim();
  claim["kind"] = "Status";
  EXPECT_FALSE(Decode(claim));
  claim = Claim();
  claim["spec"] = "all";
  EXPECT_FALSE(Decode(claim));
  EXPECT_FALSE(DecodeOpenClaim(test::Padded("{")));
}

TEST(ClaimJson, PatchesNameTheVersionThatTheyAreOf) {
  OpenClaim claim = *Decode(Claim());
  claim.finalizers = {"x/y"};
  EXPECT_EQ(Json::parse(EncodeFinalizerPatch(claim)),
            (Json{{"metadata",
                   {{"uid", "u"},
                    {"resourceVersion", "7"},
                    {"finalizers", {"x/y", "resource.kubernetes.io/delete-protection"}}}}}));
  const Json patch = Json::parse(
      EncodeAllocationPatch(claim, {"n\"1", "pool", "gpu-0-mig-1g5gb-19-6"}, {"uid", "ns", "pod"},
                            WallTime(std::chrono::seconds(1'700'000'000))));
  EXPECT_EQ(patch["metadata"], (Json{{"uid", "u"}, {"resourceVersion", "7"}}));
  const Json& allocation = patch["status"]["allocation"];
  EXPECT_EQ(allocation["devices"]["results"], Json::array({{{"request", "gpu"},
                                                            {"driver", "gpu.nvidia.com"},
                                                            {"pool", "pool"},
                                                            {"device", "gpu-0-mig-1g5gb-19-6"}}}));
  EXPECT_EQ(allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"],
            Json::array({"n\"1"}));
  EXPECT_EQ(allocation["allocationTimestamp"], "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(patch["status"]["reservedFor"],
            Json::array({{{"resource", "pods"}, {"name", "pod"}, {"uid", "uid"}}}));
}

}  // namespace
}  // namespace berth::wire::claim_json_test
