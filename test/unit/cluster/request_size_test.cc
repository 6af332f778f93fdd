// SPDX-License-Identifier: Apache-2.0

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/values/held_bytes.h"

namespace berth::request_size_test {
namespace {

constexpr std::size_t kLong = 3'000'000;

const std::string& Long() {
  static const std::string text(kLong, 'x');
  return text;
}

PodRequest SmallPod() {
  PodRequest pod;
  pod.id = {"uid", "ns", "name"};
  pod.shape.gpus = WholeGpus{1};
  return pod;
}

// A pod for each member that can hold a text or a list: it is the one that is long.
struct LongMember {
  const char* name;
  std::function<void(PodRequest&)> make_long;
};

NodeConstraints LongConstraints(int which) {
  const LabelRequirement key{Long(), LabelOperator::kExists, {}};
  const LabelRequirement values{"k", LabelOperator::kIn, {"a", Long()}};
  NodeConstraints constraints;
  if (which == 0) constraints.selector = {key};
  if (which == 1) constraints.selector = {values};
  if (which == 2) constraints.either = {{{key}, {}}};
  if (which == 3) constraints.either = {{{}, {values}}};
  if (which == 4) constraints.tolerations.emplace_back().key = Long();
  if (which == 5) constraints.tolerations.emplace_back().value = Long();
  return constraints;
}

std::vector<LongMember> LongMembers() {
  std::vector<LongMember> members = {
      {"models", [](PodRequest& pod) { pod.shape.models = {Long()}; }},
      {"gpu_resource", [](PodRequest& pod) { pod.shape.gpu_resource = Long(); }},
      {"share_agent", [](PodRequest& pod) { pod.shape.share_agent = Long(); }},
      {"model_rules",
       [](PodRequest& pod) {
         pod.shape.model_rules = ModelRules({{false, Long()}});
       }},
      {"gpu_rules",
       [](PodRequest& pod) {
         pod.shape.gpu_rules = {{true, Long()}};
       }},
      {"many short gpu_rules",
       [](PodRequest& pod) {
         pod.shape.gpu_rules.resize(kLong / 30, {false, "gpu-1"});
       }},
      {"workload", [](PodRequest& pod) { pod.shape.workload = Long(); }},
      {"nodes.required", [](PodRequest& pod) { pod.shape.nodes.required = {Long()}; }},
      {"nodes.forbidden", [](PodRequest& pod) { pod.shape.nodes.forbidden = {Long()}; }},
      {"nodes.wishes",
       [](PodRequest& pod) {
         pod.shape.nodes.wishes = {{Long(), 1}};
       }},
      {"nodes.profile", [](PodRequest& pod) { pod.shape.nodes.profile = Long(); }},
      {"near",
       [](PodRequest& pod) {
         pod.shape.neighbours.near = {{Long(), LabelOperator::kExists, {}}};
       }},
      {"far",
       [](PodRequest& pod) {
         pod.shape.neighbours.far = {{"k", LabelOperator::kIn, {Long()}}};
       }},
      {"neighbours.namespace_name",
       [](PodRequest& pod) { pod.shape.neighbours.namespace_name = Long(); }},
      {"containers", [](PodRequest& pod) { pod.containers = {{.name = Long(), .gpus = {}}}; }},
      {"refusal", [](PodRequest& pod) { pod.refusal = Long(); }},
      {"gang", [](PodRequest& pod) { pod.gang.id.name = Long(); }},
      {"gang's namespace",
       [](PodRequest& pod) {
         pod.gang.id = {"", Long(), "g"};
       }},
      {"scheduler", [](PodRequest& pod) { pod.scheduler = Long(); }},
      {"classes", [](PodRequest& pod) { pod.classes = {Long()}; }},
      {"labels", [](PodRequest& pod) {
         pod.labels = std::make_shared<const Labels>(Labels{{"k", Long()}});
       }}};
  for (int which = 0; which < 6; ++which) {
    members.push_back({"constraints", [which](PodRequest& pod) {
                         pod.constraints =
                             std::make_shared<const NodeConstraints>(LongConstraints(which));
                       }});
  }
  return members;
}

TEST(HeldBytes, EveryTextOfARequestCounts) {
  const std::size_t small = HeldBytes(SmallPod());
  EXPECT_LT(small, 2000u);
  for (const LongMember& member : LongMembers()) {
    PodRequest pod = SmallPod();
    member.make_long(pod);
    EXPECT_GE(HeldBytes(pod), small + kLong) << member.name;
    EXPECT_LE(HeldBytes(pod), small + 2 * kLong) << member.name;
  }
}

TEST(BoundRequest, ALongRequestIsCutAndRefusedIfItAsksForGpus) {
  for (const LongMember& member : LongMembers()) {
    PodRequest pod = SmallPod();
    member.make_long(pod);
    BoundRequest(pod);
    EXPECT_LE(HeldBytes(pod), kMostRequestBytes) << member.name;
    EXPECT_EQ(pod.refusal.empty(), std::string_view(member.name) == "labels") << member.name;
    EXPECT_LE(pod.refusal.size(), kMostRefusalBytes) << member.name;
    EXPECT_EQ(pod.id, SmallPod().id);
    EXPECT_EQ(pod.shape.gpu_count(), 1);
  }
}

TEST(BoundRequest, OneWithoutGpusIsSchedulersAloneAndNotRefused) {
  PodRequest pod = SmallPod();
  pod.shape.gpus = NoGpu{};
  pod.constraints = std::make_shared<const NodeConstraints>(LongConstraints(0));
  pod.mobility = Mobility::kMoves;
  BoundRequest(pod);
  EXPECT_EQ(pod.refusal, "");
  EXPECT_EQ(pod.constraints, nullptr);
  EXPECT_EQ(pod.mobility, Mobility::kUnknown) << "nobody knows where it may go";
}

TEST(BoundRequest, WhatKubernetesAdmitsInReasonStaysWhole) {
  PodRequest pod = SmallPod();
  NodeConstraints constraints;
  const std::string key = std::string(253, 'k') + "/" + std::string(63, 'n');
  for (int i = 0; i < 500; ++i) {
    constraints.selector.push_back({key, LabelOperator::kIn, {std::string(63, 'v')}});
  }
  constraints.selector[0].values.resize(20'000, std::string(20, 'n'));
  pod.labels = std::make_shared<const Labels>(Labels(100, {key, std::string(63, 'v')}));
  pod.constraints = std::make_shared<const NodeConstraints>(constraints);
  BoundRequest(pod);
  EXPECT_EQ(pod.refusal, "");
  EXPECT_NE(pod.constraints, nullptr);
  EXPECT_NE(pod.labels, nullptr);
}

TEST(BoundRequest, LabelsBeyondTheirBoundAreDroppedAndThePodIsPlaced) {
  PodRequest pod = SmallPod();
  pod.labels = std::make_shared<const Labels>(Labels{{"k", std::string(64 << 10, 'x')}});
  BoundRequest(pod);
  EXPECT_EQ(pod.labels, nullptr);
  EXPECT_EQ(pod.refusal, "");
}

TEST(BoundRequest, SaysWhatWasWantedAndWhatCame) {
  PodRequest pod = SmallPod();
  pod.shape.models = {std::string((4 << 20) + 512, 'x')};
  BoundRequest(pod);
  EXPECT_EQ(pod.refusal, "conditions and annotations: want at most 2048 KiB, got 4097");
}

}  // namespace
}  // namespace berth::request_size_test
