// SPDX-License-Identifier: Apache-2.0
#include "config/parse_yaml.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::yaml_json_test {
namespace {

using Texts = std::vector<std::string>;

Texts Read(const std::string& text) {
  const auto documents = JsonDocuments(text, "pods.yaml");
  EXPECT_TRUE(documents) << documents.error().message;
  return documents ? *documents : Texts();
}

std::string ErrorOf(const std::string& text) {
  const auto documents = JsonDocuments(text, "pods.yaml");
  EXPECT_FALSE(documents);
  return documents ? "" : documents.error().message;
}

TEST(YamlJson, PlainScalarsAreWhatTheyLookLikeAndQuotedOnesAreTexts) {
  EXPECT_EQ(Read("a: 1\nb: '1'\nc: true\nd: \"true\"\ne:\nf: ~\ng: -0.5e3\nh: 010\ni: 1Gi\n"),
            (Texts{R"({"a":1,"b":"1","c":true,"d":"true","e":null,"f":null,"g":-0.5e3,"h":"010",)"
                   R"("i":"1Gi"})"}));
  EXPECT_EQ(Read("[1., .5, 1e, yes, FALSE, !!str 1]"),
            (Texts{R"(["1.",".5","1e","yes",false,"1"])"}));
}

TEST(YamlJson, KeysAreTextsAndCollectionsMayBeEmpty) {
  EXPECT_EQ(Read("1: [a, {}]\nb: {c: []}\n"), (Texts{R"({"1":["a",{}],"b":{"c":[]}})"}));
}

TEST(YamlJson, WhatJsonHasToEscapeIsEscaped) {
  EXPECT_EQ(Read("a: \"x\\\"\\\\\\n\\t\"\n"), (Texts{R"({"a":"x\"\\\u000a\u0009"})"}));
}

TEST(YamlJson, AnchorsAreFollowed) {
  EXPECT_EQ(Read("a: &x {n: 1}\nb: *x\n"), (Texts{R"({"a":{"n":1},"b":{"n":1}})"}));
}

TEST(YamlJson, MergedMappingsGiveWhatIsNotSaid) {
  EXPECT_EQ(Read("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n"),
            (Texts{R"({"a":{"x":1,"y":2},"b":{"y":3,"x":1}})"}));
  EXPECT_EQ(Read("a: &a {x: 1}\nb: &b {x: 2, z: {x: 3}}\nc: {<<: [*a, *b]}\n"),
            (Texts{R"({"a":{"x":1},"b":{"x":2,"z":{"x":3}},"c":{"x":1,"z":{"x":3}}})"}))
      << "the first of several counts";
  EXPECT_EQ(Read("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n"),
            (Texts{R"({"a":{"x":1},"b":{"y":2,"x":1},"c":{"y":2,"x":1}})"}));
  EXPECT_EQ(ErrorOf("a: {<<: 1}\n"), "pods.yaml:1: want a mapping behind <<");
}

TEST(YamlJson, RepeatedKeysAreRefused) {
  EXPECT_EQ(Read("{'<<': 1}\n"), (Texts{R"({"<<":1})"})) << "a quoted one is a key";
  EXPECT_EQ(ErrorOf("metadata: {}\nspec: {}\nmetadata: {}\n"),
            "pods.yaml:3: want each key once, got again: metadata");
}

TEST(YamlJson, DocumentsAreDividedAtTheirMarkers) {
  EXPECT_EQ(Read("# nothing\n---\na: 1\n---\n# nothing\n--- {b: 2}\n...\n---\nc: |\n  ---\n  x\n"),
            (Texts{R"({"a":1})", R"({"b":2})", R"({"c":"---\u000ax\u000a"})"}));
  EXPECT_EQ(Read("---\r\na: 1\r\n---\r\nb: 2\r\n"), (Texts{R"({"a":1})", R"({"b":2})"}));
  EXPECT_EQ(Read(""), Texts());
}

TEST(YamlJson, JsonIsHandedBackAsItIs) { EXPECT_EQ(Read(" {\"a\":\t1}"), (Texts{" {\"a\":\t1}"})); }

TEST(YamlJson, AMappingOnOneLineIsYaml) {
  EXPECT_EQ(Read("{kind: Pod}\n"), (Texts{R"({"kind":"Pod"})"}));
}

TEST(YamlJson, RefusesInvalidYamlWithItsLine) {
  EXPECT_TRUE(ErrorOf("a: [\n").starts_with("pods.yaml:")) << ErrorOf("a: [\n");
  const std::string second = ErrorOf("a: 1\n---\nb:\n  c: [\n");
  EXPECT_TRUE(second.starts_with("pods.yaml document 2:")) << second;
}

}  // namespace
}  // namespace berth::yaml_json_test
