// SPDX-License-Identifier: Apache-2.0
//
// The schema against the reader: what ships, and what is printed, is valid by it; what the reader
// refuses of one value alone is not.
#include "config/config.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "config/load.h"
#include "config/parse_yaml.h"
#include "test/support/build_paths.h"

namespace berth::test::schema_test {
namespace {

using nlohmann::json;

// A plain YAML scalar as JSON has it; a quoted one is a text.
json Value(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& field : node) object[field.first.Scalar()] = Value(field.second);
    return object;
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& item : node) list.push_back(Value(item));
    return list;
  }
  if (node.IsNull()) return nullptr;
  const json number = json::parse(node.Scalar(), nullptr, false);
  const bool is_plain = node.Tag() == "?" && (number.is_number() || number.is_boolean());
  return is_plain ? number : json(node.Scalar());
}

bool IsOfType(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

bool TypeFits(const json& schema, const json& value) {
  if (!schema.contains("type")) return true;
  const json& type = schema["type"];
  if (type.is_string()) return IsOfType(value, type);
  return std::ranges::any_of(type, [&](const json& one) { return IsOfType(value, one); });
}

bool RangeFits(const json& schema, const json& value) {
  if (!value.is_number()) return true;
  if (schema.contains("minimum") && value < schema["minimum"]) return false;
  if (schema.contains("maximum") && value > schema["maximum"]) return false;
  return !schema.contains("exclusiveMinimum") || value > schema["exclusiveMinimum"];
}

// The path of the first value that the schema does not allow; empty: there is none. It knows the
// words of our schema, and no other.
std::string Refused(const json& schema, const json& value, const std::string& path = "$") {
  for (const auto& [word, unused] : schema.items()) {
    static const std::vector<std::string> kKnown = {"$schema",
                                                    "title",
                                                    "description",
                                                    "default",
                                                    "type",
                                                    "properties",
                                                    "additionalProperties",
                                                    "items",
                                                    "minimum",
                                                    "maximum",
                                                    "enum",
                                                    "const",
                                                    "exclusiveMinimum"};
    EXPECT_NE(std::ranges::find(kKnown, word), kKnown.end()) << word;
  }
  if (!TypeFits(schema, value) || !RangeFits(schema, value)) return path;
  if (schema.contains("const") && value != schema["const"]) return path;
  if (schema.contains("enum") && !std::ranges::count(schema["enum"], value)) return path;
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = path + "[" + std::to_string(i) + "]";
      if (std::string bad = Refused(schema["items"], value[i], at); !bad.empty()) return bad;
    }
  }
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [key, inner] : value.items()) {
      const std::string at = path + "." + key;
      if (!schema["properties"].contains(key)) return at;
      if (std::string bad = Refused(schema["properties"][key], inner, at); !bad.empty()) return bad;
    }
  }
  return "";
}

std::string RefusedText(const std::string& yaml) {
  const auto document = ParseYaml(yaml, "yaml");
  EXPECT_TRUE(document) << document.error().message;
  return Refused(json::parse(ConfigSchema()), Value(*document));
}

TEST(ConfigSchema, TheDocumentationHasTheSchemaOfTheCode) {
  const auto file = ReadFile(SourceDir() + "/docs/berth-configuration.schema.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(*file, ConfigSchema()) << "write it anew: berth config schema";
}

TEST(ConfigSchema, WhatShipsIsValid) {
  for (const char* file :
       {"manifests/base/config/berth.yaml", "manifests/components/mtls/config/berth.yaml",
        "manifests/overlays/aks/config/berth.yaml", "test/fuzz/seeds/configuration/all.yaml"}) {
    const auto text = ReadFile(SourceDir() + "/" + file);
    ASSERT_TRUE(text) << text.error().message;
    ASSERT_TRUE(LoadConfig(*text, file));
    EXPECT_EQ(RefusedText(*text), "") << file;
  }
}

TEST(ConfigSchema, AcceptsThePrintedConfiguration) {
  Config config = DefaultConfig();
  EXPECT_EQ(RefusedText(PrintConfig(config)), "");
  config.profiles = {{"mine", {{"best-fit", 3}}, DeviceRule::kBestScore, TieRule::kFirst}};
  config.machine_types = {{.name = "p5.48xlarge", .price_per_hour = 98.32},
                          {"own", 4, "NVIDIA-L40S", 46'068, 1, false, 0, 0.0}};
  EXPECT_EQ(RefusedText(PrintConfig(config)), "");
}

TEST(ConfigSchema, TheFormsOfALevelAreValid) {
  EXPECT_EQ(RefusedText("topology: {levels: [{preset: gke}, {nodeLabel: x}, {labels: [y, z]}]}"),
            "");
}

TEST(ConfigSchema, AFaultyValueIsRefusedAtItsPathAsTheReaderDoes) {
  const std::pair<const char*, const char*> faults[] = {
      {"profil: x", "$.profil"},
      {"server: {port: 1}", "$.server.port"},
      {"server: {tls: {cert: x}}", "$.server.tls.cert"},
      {"server: fast", "$.server"},
      {"server: {threads: many}", "$.server.threads"},
      {"server: {threads: 0}", "$.server.threads"},
      {"server: {threads: 65}", "$.server.threads"},
      {"server: {threads: 1.5}", "$.server.threads"},
      {"leaderElection: {enabled: yes}", "$.leaderElection.enabled"},
      {"profiles: {a: b}", "$.profiles"},
      {"profiles: [{name: x, ties: y}]", "$.profiles[0].ties"},
      {"profiles: [{name: x, scorers: [{name: best-fit, w: 1}]}]", "$.profiles[0].scorers[0].w"},
      {"traits: [{labels: A100}]", "$.traits[0].labels"},
      {"requestMix: []", "$.requestMix"},
      {"expectedWaste: {coverage: 1}", "$.expectedWaste"},
      {"topology: {levels: [{preset: azure}]}", "$.topology.levels[0].preset"},
      {"machineTypes: [{name: x, gpus: 0}]", "$.machineTypes[0].gpus"},
      {"machineTypes: [{name: x, gpus: 1, pricePerHour: -1}]", "$.machineTypes[0].pricePerHour"},
      {"machineTypes: [{name: x, gpus: 1, rdma: yes}]", "$.machineTypes[0].rdma"},
      {"logLevel: loud", "$.logLevel"},
      {"kind: Pod", "$.kind"},
      {"apiVersion: v1", "$.apiVersion"}};
  for (const auto& [text, path] : faults) {
    EXPECT_EQ(RefusedText(text), path) << text;
    EXPECT_FALSE(LoadConfig(text, "f")) << text;
  }
}

}  // namespace
}  // namespace berth::test::schema_test
