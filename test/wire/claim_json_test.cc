// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/claim_json.h"

#include "server/dialects/dra/device_class_json.h"

#include "test/support/wire_fixture.h"

namespace berth::wire::claim_json_test {
namespace {

using dialects::DecodeOpenClaim;
using dialects::EncodeAllocationPatch;
using dialects::EncodeDeallocationPatch;
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
  ASSERT_EQ(claim->asks.requests.size(), 1u);
  EXPECT_EQ(claim->asks.requests[0].name, "gpu");
  const DeviceWant& want = claim->asks.requests[0].wants.at(0);
  EXPECT_EQ(want.device_class, "mig.nvidia.com");
  EXPECT_EQ(want.count, 1);
  EXPECT_EQ(want.selectors.size(), 1u);
  json["status"]["allocation"] = Json::object();
  EXPECT_TRUE(Decode(json)->allocated);
}

TEST(ClaimJson, EverythingThatAClaimCanAskForIsRead) {
  Json json = Claim();
  json["spec"]["devices"] = Json::parse(R"({
    "requests": [
      {"name": "all", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All",
        "adminAccess": false, "tolerations": [
          {"key": "ill", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]}},
      {"name": "either", "firstAvailable": [
        {"name": "two", "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount",
          "count": 2},
        {"name": "part", "deviceClassName": "mig.nvidia.com", "allocationMode": "ExactCount",
          "count": 1, "selectors": [{"cel": {"expression": "true"}}]}]}],
    "constraints": [{"requests": ["either/two"], "matchAttribute": "gpu.nvidia.com/numaNode"},
      {"distinctAttribute": "resource.kubernetes.io/pcieRoot"}],
    "config": [{"requests": ["all"],
      "opaque": {"driver": "gpu.nvidia.com", "parameters": {"a\"b": [1, {}]}}}]})");
  const auto claim = Decode(json);
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->obstacle, "");
  const DeviceClaim& asks = claim->asks;
  ASSERT_EQ(asks.requests.size(), 2u);
  const DeviceWant& all = asks.requests[0].wants.at(0);
  EXPECT_TRUE(all.all);
  ASSERT_EQ(all.tolerations.size(), 1u);
  EXPECT_EQ(all.tolerations[0].op, TolerationOperator::kExists);
  EXPECT_EQ(Json::parse(all.tolerations_json)[0]["tolerationSeconds"], 5);
  EXPECT_TRUE(asks.requests[1].first_available);
  ASSERT_EQ(asks.requests[1].wants.size(), 2u);
  EXPECT_EQ(asks.requests[1].wants[0].count, 2);
  EXPECT_EQ(NameOf(asks.requests[1], asks.requests[1].wants[1]), "either/part");
  ASSERT_EQ(asks.constraints.size(), 2u);
  EXPECT_FALSE(asks.constraints[0].distinct);
  EXPECT_EQ(asks.constraints[0].requests, std::vector<std::string>{"either/two"});
  EXPECT_TRUE(asks.constraints[1].distinct);
  EXPECT_EQ(asks.constraints[1].attribute, "resource.kubernetes.io/pcieRoot");
  ASSERT_EQ(asks.configs.size(), 1u);
  EXPECT_EQ(Json::parse(asks.configs[0].content)["opaque"]["parameters"]["a\"b"][0], 1);
}

TEST(ClaimJson, WhatBerthDoesNotAllocateIsAnObstacle) {
  const std::string unread = "it has a field or a value that Berth does not know";
  Json claim = Claim();
  Exactly(claim)["adminAccess"] = true;
  EXPECT_EQ(ObstacleOf(claim), "it asks for access for administration");
  claim = Claim();
  Exactly(claim)["capacity"] = {{"limits", Json::object()}};
  EXPECT_EQ(ObstacleOf(claim), unread);
  Exactly(claim)["capacity"] = {{"requests", {{"memory", "much"}}}};
  EXPECT_EQ(ObstacleOf(claim), unread);
  Exactly(claim)["capacity"] = {{"requests", {{"memory", "10E"}}}};
  EXPECT_EQ(ObstacleOf(claim), unread) << "in thousandths it is beyond 64 bits";
  claim = Claim();
  Exactly(claim)["derivedAttributes"] = Json::array();
  EXPECT_EQ(ObstacleOf(claim), unread);
  claim = Claim();
  Exactly(claim)["allocationMode"] = "Some";
  EXPECT_EQ(ObstacleOf(claim), unread);
  claim = Claim();
  Exactly(claim)["selectors"] = Json::array({{{"rego", "x"}}});
  EXPECT_EQ(ObstacleOf(claim), unread);
  claim = Claim();
  claim["spec"]["devices"]["constraints"] = Json::array({{{"unlike", "x"}}});
  EXPECT_EQ(ObstacleOf(claim), unread);
  claim = Claim();
  claim["spec"]["devices"]["requests"] = Json::array();
  EXPECT_EQ(ObstacleOf(claim), "it has no requests");
  claim = Claim();
  claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(ObstacleOf(claim), "it is being deleted");
}

TEST(ClaimJson, PartsOfDevicesAreReadAndWritten) {
  Json json = Claim();
  Exactly(json)["capacity"] = {{"requests", {{"memory", "20Gi"}, {"x/cores", 2.5}}}};
  OpenClaim claim = *Decode(json);
  EXPECT_EQ(claim.obstacle, "");
  DeviceRequest& request = claim.asks.requests[0];
  const CapacityUses part = {{"memory", 20LL * 1024 * 1024 * 1024 * 1000}, {"x/cores", 2500}};
  EXPECT_EQ(request.wants[0].capacity, part);
  const Json patch =
      Json::parse(EncodeAllocationPatch(claim,
                                        {"n",
                                         {{&request, &request.wants[0], "d", "p", "gpu-0", &part},
                                          {&request, &request.wants[0], "d", "p", "gpu-0", &part}}},
                                        {"uid", "ns", "pod"}, WallTime()));
  const Json& results = patch["status"]["allocation"]["devices"]["results"];
  EXPECT_EQ(results[0]["consumedCapacity"],
            (Json{{"memory", "21474836480"}, {"x/cores", "2500m"}}));
  EXPECT_EQ(results[0]["shareID"].get<std::string>().size(), 36u);
  EXPECT_NE(results[0]["shareID"], results[1]["shareID"]);
  Exactly(json)["capacity"]["requests"] = Json::object();
  for (std::size_t i = 0; i <= kMostCapacities; ++i) {
    Exactly(json)["capacity"]["requests"][std::to_string(i)] = "1";
  }
  EXPECT_EQ(ObstacleOf(json), "it has more of something than Kubernetes admits");
}

TEST(ClaimJson, MoreThanKubernetesAdmitsIsAnObstacle) {
  const std::string too_large = "it has more of something than Kubernetes admits";
  Json claim = Claim();
  for (int i = 0; i < 1000; ++i) {
    claim["spec"]["devices"]["requests"].push_back(claim["spec"]["devices"]["requests"][0]);
  }
  EXPECT_EQ(ObstacleOf(claim), too_large);
  EXPECT_LE(Decode(claim)->asks.requests.size(), kMostClaimRequests);
  claim = Claim();
  Json& request = claim["spec"]["devices"]["requests"][0];
  for (int i = 0; i < 9; ++i) request["firstAvailable"].push_back(request["exactly"]);
  request.erase("exactly");
  EXPECT_EQ(ObstacleOf(claim), too_large);
  claim = Claim();
  for (int i = 0; i < 40; ++i) Exactly(claim)["selectors"].push_back(Cel("true"));
  EXPECT_EQ(ObstacleOf(claim), too_large);
  claim = Claim();
  Exactly(claim)["tolerations"] = Json::array();
  for (int i = 0; i < 20; ++i) Exactly(claim)["tolerations"].push_back({{"operator", "Exists"}});
  EXPECT_EQ(ObstacleOf(claim), too_large);
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
  DeviceRequest& request = claim.asks.requests[0];
  request.wants[0].name = "sub";
  request.wants[0].tolerations_json = R"([{"operator":"Exists"}])";
  const Json patch = Json::parse(
      EncodeAllocationPatch(claim,
                            {"n\"1",
                             {{&request, &request.wants[0], "gpu.nvidia.com", "pool", "gpu-0"},
                              {&request, &request.wants[0], "gpu.nvidia.com", "pool", "gpu-1"}},
                             {{true, {}, R"({"opaque":{"driver":"x"}})"}, {false, {"gpu"}, "{}"}}},
                            {"uid", "ns", "pod"}, WallTime(std::chrono::seconds(1'700'000'000))));
  EXPECT_EQ(patch["metadata"], (Json{{"uid", "u"}, {"resourceVersion", "7"}}));
  const Json& allocation = patch["status"]["allocation"];
  ASSERT_EQ(allocation["devices"]["results"].size(), 2u);
  EXPECT_EQ(allocation["devices"]["results"][1],
            (Json{{"request", "gpu/sub"},
                  {"driver", "gpu.nvidia.com"},
                  {"pool", "pool"},
                  {"device", "gpu-1"},
                  {"tolerations", Json::array({{{"operator", "Exists"}}})}}));
  EXPECT_EQ(allocation["devices"]["config"],
            Json::array({{{"opaque", {{"driver", "x"}}}, {"source", "FromClass"}},
                         {{"source", "FromClaim"}, {"requests", Json::array({"gpu"})}}}));
  EXPECT_EQ(allocation["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"],
            Json::array({"n\"1"}));
  EXPECT_EQ(allocation["allocationTimestamp"], "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(patch["status"]["reservedFor"],
            Json::array({{{"resource", "pods"}, {"name", "pod"}, {"uid", "uid"}}}));
  const Json back = Json::parse(EncodeDeallocationPatch(claim));
  EXPECT_EQ(back["metadata"], patch["metadata"]);
  EXPECT_TRUE(back["status"].at("allocation").is_null());
  EXPECT_TRUE(back["status"].at("reservedFor").is_null());
}

}  // namespace
}  // namespace berth::wire::claim_json_test
