// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_annotations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::test::node_annotations_test {
namespace {

using node::AnnotationPatch;
using node::NodeAnnotations;
using node::ReadNodeAnnotations;
using node::WantedAnnotations;

NodeAnnotations Read(const std::string& json) {
  const auto read = ReadNodeAnnotations(json);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return read ? *read : NodeAnnotations();
}

std::string PatchOf(const NodeAnnotations& now, const WantedAnnotations& wanted,
                    std::string* kept = nullptr) {
  std::vector<std::string> left;
  const auto patch = AnnotationPatch(now, wanted, left);
  if (kept != nullptr) *kept = left.empty() ? "" : left[0];
  return patch.value_or("none");
}

const std::string kNode = R"({"kind":"Node","status":{"images":[{"names":["a"]}]},
  "metadata":{"name":"n","labels":{"nvidia.com/mig.strategy":"single"},
    "annotations":{"berth.dev/topology":"T","berth.dev/mig":"M","other":"x"},
    "managedFields":[
      {"manager":"kubectl-annotate","fieldsV1":{"f:metadata":{"f:annotations":{"f:berth.dev/mig":{}}}}},
      {"manager":"berth-node","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:berth.dev/topology":{}}}}},
      {"manager":"berth-node","fieldsV1":7}, null]}})";

TEST(NodeAnnotations, AreReadWithWhoWroteThem) {
  const NodeAnnotations read = Read(kNode);
  EXPECT_EQ(read.values.size(), 2u);
  EXPECT_EQ(read.values.at("berth.dev/mig"), "M");
  EXPECT_EQ(read.ours, (std::set<std::string>{"berth.dev/topology"}));
  EXPECT_TRUE(read.mig_single);
}

TEST(NodeAnnotations, OfANodeWithoutAnyAreEmpty) {
  const NodeAnnotations read = Read(R"({"metadata":{"name":"n"}})");
  EXPECT_TRUE(read.values.empty());
  EXPECT_FALSE(read.mig_single);
  EXPECT_FALSE(ReadNodeAnnotations("[]"));
  EXPECT_FALSE(ReadNodeAnnotations(""));
  EXPECT_FALSE(ReadNodeAnnotations(R"({"metadata":[]})"));
}

TEST(NodeAnnotations, ArePatchedOnlyWhereTheyDiffer) {
  const NodeAnnotations now = Read(kNode);
  EXPECT_EQ(PatchOf(now, {{"berth.dev/topology", "T"}}), "none");
  EXPECT_EQ(PatchOf(now, {{"berth.dev/carries-out", std::nullopt}}), "none");
  EXPECT_EQ(
      PatchOf(now, {{"berth.dev/topology", "U"}, {"berth.dev/carries-out", "nvidia.com/gpu"}}),
      R"({"metadata":{"annotations":{"berth.dev/carries-out":"nvidia.com/gpu",)"
      R"("berth.dev/topology":"U"}}})");
  EXPECT_EQ(PatchOf(now, {{"berth.dev/topology", std::nullopt}}),
            R"({"metadata":{"annotations":{"berth.dev/topology":null}}})");
  EXPECT_EQ(PatchOf(now, {{"other", "y"}}), "none");  // not the agent's to write
}

TEST(NodeAnnotations, ThatPeopleWroteStay) {
  const NodeAnnotations now = Read(kNode);
  std::string kept;
  EXPECT_EQ(PatchOf(now, {{"berth.dev/mig", "N"}}, &kept), "none");
  EXPECT_EQ(kept, "berth.dev/mig");
  EXPECT_EQ(PatchOf(now, {{"berth.dev/mig", std::nullopt}}, &kept), "none");
  EXPECT_EQ(kept, "");
}

TEST(NodeAnnotations, ThatAreTheAgentsAloneAreCorrected) {
  NodeAnnotations now;
  now.values = {{"berth.dev/carries-out", "x"}, {"berth.dev/gpu-uuids", "GPU-b"}};
  EXPECT_EQ(PatchOf(now, {{"berth.dev/carries-out", std::nullopt}}),
            R"({"metadata":{"annotations":{"berth.dev/carries-out":null}}})");
  EXPECT_EQ(PatchOf(now, {{"berth.dev/gpu-uuids", "GPU-a"}}),
            R"({"metadata":{"annotations":{"berth.dev/gpu-uuids":"GPU-a"}}})");
  EXPECT_EQ(PatchOf(now, {{"berth.dev/gpu-uuids", std::nullopt}}), "none");
}

}  // namespace
}  // namespace berth::test::node_annotations_test
