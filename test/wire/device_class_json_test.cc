// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_class_json.h"

#include "test/support/wire_fixture.h"

namespace berth::wire::device_class_json_test {
namespace {

using dialects::DecodeDeviceClass;
using test::Json;

const std::string kDriver = "device.driver == 'gpu.nvidia.com'";
const std::string kMig = "device.attributes[\"gpu.nvidia.com\"].type == \"mig\"";
const std::string kSmall = "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'";

// As the API server has it.
Json Class(const std::vector<std::string>& selectors, const std::string& resource = "") {
  Json json = {
      {"kind", "DeviceClass"},
      {"apiVersion", "resource.k8s.io/v1"},
      {"metadata", {{"name", "small"}, {"creationTimestamp", "2026-05-04T03:02:01Z"}}},
      {"spec", {{"selectors", Json::array()}}},
  };
  for (const std::string& expression : selectors) {
    json["spec"]["selectors"].push_back({{"cel", {{"expression", expression}}}});
  }
  if (!resource.empty()) json["spec"]["extendedResourceName"] = resource;
  return json;
}

struct Read {
  std::string profile;  // "" = none; an error's text
  std::string problem;
  friend bool operator==(const Read&, const Read&) = default;
};
Read Decode(const Json& json) {
  Read read;
  const auto decoded = DecodeDeviceClass(test::Padded(json.dump()), read.problem);
  if (!decoded) return {decoded.error().message, read.problem};
  if (decoded->profile) read.profile = MigProfileName(*decoded->profile);
  return read;
}

TEST(DeviceClassJson, NamesAndTheProfileAreRead) {
  std::string problem;
  const auto read =
      DecodeDeviceClass(test::Padded(Class({kSmall}, "nvidia.com/mig-1g.5gb").dump()), problem);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "small");
  EXPECT_EQ(read->extended_resource, "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(read->created, "2026-05-04T03:02:01Z");
  ASSERT_TRUE(read->profile);
  EXPECT_EQ(MigProfileName(*read->profile), "1g.5gb");
  EXPECT_EQ(problem, "");
}

TEST(DeviceClassJson, WhatIsTrueOfEveryMigDeviceMayBeThereToo) {
  EXPECT_EQ(Decode(Class({kDriver + " && " + kMig + "&&\n " + kSmall})), (Read{"1g.5gb", ""}));
  EXPECT_EQ(Decode(Class({kMig, kSmall, kDriver})), (Read{"1g.5gb", ""}));
  EXPECT_EQ(Decode(Class({kSmall, kSmall})), (Read{"1g.5gb", ""}));
}

TEST(DeviceClassJson, OtherSelectorsGiveNoProfileAndAreReportedForMigResources) {
  const std::string name = "nvidia.com/mig-1g.5gb";
  const std::string want = "spec.selectors: want what Berth reads as the MIG profile of " + name;
  const std::string left = "; kube-scheduler alone places pods that ask for it";
  for (const auto& [selectors, got] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{kSmall + " && device.attributes['gpu.nvidia.com'].index == 1"},
            "\"device.attributes['gpu.nvidia.com'].index==1\""},
           {{kSmall + " || " + kMig},
            "\"device.attributes['gpu.nvidia.com'].profile=='1g.5gb'||"
            "device.attributes['gpu.nvidia.com'].type=='mig'\""},
           {{kSmall, "device.attributes['gpu.nvidia.com'].profile == '2g.10gb'"},
            "\"device.attributes['gpu.nvidia.com'].profile=='2g.10gb'\""},
           {{"device.attributes['gpu.nvidia.com'].profile == '2g.10gb'"}, "2g.10gb"},
           {{kDriver, kMig}, "no profile"},
           {{}, "no profile"}}) {
    EXPECT_EQ(Decode(Class(selectors, name)), (Read{"", want + ", got " + got + left}));
  }
  // Other resources are not Berth's, whatever they stand for.
  EXPECT_EQ(Decode(Class({"device.driver == 'other'"}, "other.com/gpu")), (Read{"", ""}));
  EXPECT_EQ(Decode(Class({kMig})), (Read{"", ""}));
}

TEST(DeviceClassJson, WhatIsNoDeviceClassIsAnError) {
  Json json = Class({kSmall});
  json["kind"] = "Pod";
  EXPECT_EQ(Decode(json).profile, "kind: want DeviceClass, got \"Pod\"");
  json = Class({kSmall});
  json["metadata"].erase("name");
  EXPECT_EQ(Decode(json).profile, "metadata.name: want a name, got \"\"");
  json = Class({kSmall});
  json["spec"]["selectors"] = 7;
  EXPECT_NE(Decode(json).profile, "1g.5gb");
}

}  // namespace
}  // namespace berth::wire::device_class_json_test
