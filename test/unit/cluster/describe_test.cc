// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/describe.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/node/describe_node.h"
#include "cluster/values/alike.h"

namespace berth::describe_test {
namespace {

struct Change {
  const char* member;
  Role role;
  std::function<void(PodRequest&)> make;
};

std::vector<Change> Changes() {
  using enum Role;
  return {
      {"id", kIdentity, [](PodRequest& pod) { pod.id.name = "other"; }},
      {"shape", kKind, [](PodRequest& pod) { pod.shape.beside_nic = true; }},
      {"a container's GPUs", kKind,
       [](PodRequest& pod) { pod.containers.front().gpus = WholeGpus{2}; }},
      {"a container's name", kIdentity, [](PodRequest& pod) { pod.containers.front().name = "x"; }},
      {"refusal", kKind, [](PodRequest& pod) { pod.refusal = "no"; }},
      {"constraints", kKind,
       [](PodRequest& pod) {
         NodeConstraints constraints;
         constraints.selector = {{"zone", LabelOperator::kIn, {"b"}}};
         pod.constraints = std::make_shared<const NodeConstraints>(constraints);
       }},
      {"belongs_on_any_node", kKind, [](PodRequest& pod) { pod.belongs_on_any_node = true; }},
      {"device_class", kKind, [](PodRequest& pod) { pod.device_class = "gpu"; }},
      {"priority", kTurn, [](PodRequest& pod) { pod.priority = 7; }},
      {"may_preempt", kTurn, [](PodRequest& pod) { pod.may_preempt = false; }},
      {"own_to_scheduler", kTurn, [](PodRequest& pod) { pod.own_to_scheduler.volumes = true; }},
      {"gang", kGroup, [](PodRequest& pod) { pod.gang.id.name = "g"; }},
      {"scheduler", kGroup, [](PodRequest& pod) { pod.scheduler = "s"; }},
      {"domain", kGroup, [](PodRequest& pod) { pod.domain.required = 1; }},
      {"role", kGroup, [](PodRequest& pod) { pod.role = "worker"; }},
      {"leads", kGroup, [](PodRequest& pod) { pod.leads = true; }},
      {"others", kKind,
       [](PodRequest& pod) {
         pod.others = std::make_shared<const OtherResources>(OtherResources{{"rdma/hca", 1}});
       }},
      {"claims", kIdentity, [](PodRequest& pod) { pod.claims = {"c"}; }},
      {"made_claim", kIdentity, [](PodRequest& pod) { pod.made_claim = 7; }},
      {"checkpointed", kLoss, [](PodRequest& pod) { pod.checkpointed = WallTime(); }},
      {"keep", kLoss, [](PodRequest& pod) { pod.keep = true; }},
      {"mobility", kLoss, [](PodRequest& pod) { pod.mobility = Mobility::kMoves; }},
      {"deletion_cost", kLoss, [](PodRequest& pod) { pod.deletion_cost = -3; }},
      {"grace_seconds", kLoss, [](PodRequest& pod) { pod.grace_seconds = 0; }},
      {"expected_seconds", kLoss, [](PodRequest& pod) { pod.expected_seconds = 60; }},
      {"deadline_seconds", kLoss, [](PodRequest& pod) { pod.deadline_seconds = 60; }},
      {"controller", kIdentity, [](PodRequest& pod) { pod.controller = "c"; }},
      {"series", kIdentity, [](PodRequest& pod) { pod.series = 7; }},
      {"labels", kShown,
       [](PodRequest& pod) {
         pod.labels = std::make_shared<const Labels>(Labels{{"a", "c"}});
       }},
      {"classes", kShown, [](PodRequest& pod) { pod.classes = {"training"}; }},
      {"container_count", kShown, [](PodRequest& pod) { pod.container_count = 3; }},
      {"init_container_count", kShown, [](PodRequest& pod) { pod.init_container_count = 1; }},
  };
}

PodRequest APod() {
  PodRequest pod;
  pod.id = {"u", "ns", "p"};
  pod.shape.gpus = WholeGpus{1};
  pod.containers = {{.name = "main", .gpus = WholeGpus{1}}};
  NodeConstraints constraints;
  constraints.selector = {{"zone", LabelOperator::kIn, {"a"}}};
  pod.constraints = std::make_shared<const NodeConstraints>(constraints);
  pod.labels = std::make_shared<const Labels>(Labels{{"a", "b"}});
  return pod;
}

TEST(SameIn, TellsPodsApartByTheRoleOfTheMemberInWhichTheyDiffer) {
  using enum Role;
  for (const Change& change : Changes()) {
    SCOPED_TRACE(change.member);
    PodRequest other = APod();
    change.make(other);
    EXPECT_EQ(SamePodKind(APod(), other), change.role != kKind);
    EXPECT_EQ(SameIn<kTurn>(APod(), other), change.role != kTurn);
    EXPECT_EQ(SameIn<kGroup>(APod(), other), change.role != kGroup);
    EXPECT_EQ(SameIn<kLoss>(APod(), other), change.role != kLoss);
    EXPECT_EQ(SameIn<kShown>(APod(), other), change.role != kShown);
    // The names of containers are told apart with the pod's kind alone.
    const bool same_without_kind = SameIn<kTurn, kGroup, kLoss, kIdentity, kShown>(APod(), other);
    EXPECT_EQ(same_without_kind,
              change.role == kKind || std::string(change.member) == "a container's name");
  }
  EXPECT_TRUE(SamePodKind(APod(), APod())) << "constraints are compared by content";
}

TEST(SameIn, ComparesContainersInSeveralRoles) {
  PodRequest other = APod();
  other.containers.front().name = "x";
  EXPECT_TRUE(SamePodKind(APod(), other));
  EXPECT_FALSE((SameIn<Role::kKind, Role::kIdentity>(APod(), other)));
}

// Each member of PodRequest is in Changes: a new one needs a role that is tested.
TEST(Describe, TheRoleOfEveryMemberOfAPodIsTested) {
  std::size_t members = 0;
  const PodRequest pod;
  ForEachMember(pod, [&members](const auto&) { ++members; });
  EXPECT_EQ(Changes().size(), members + 1) << "containers are there twice";
}

template <class T>
std::set<std::string> KeysOf() {
  std::set<std::string> keys;
  const T value{};
  std::size_t with_key = 0;
  ForEachMember(value, [&](const auto& member) {
    if (std::remove_cvref_t<decltype(member)>::written == Written::kNever) return;
    keys.insert(member.key.name);
    ++with_key;
    EXPECT_LE(member.key.low, member.key.high) << member.key.name;
  });
  EXPECT_EQ(keys.size(), with_key) << "a key is there twice";
  return keys;
}

// The values of a pod are one object in the file.
TEST(Describe, OnlyTheAmountsOfAPodStandForTwoMembers) {
  std::set<std::string> all = KeysOf<Placement>(), twice;
  for (const auto& keys : {KeysOf<RequestShape>(), KeysOf<PodRequest>(), KeysOf<PodId>()}) {
    for (const std::string& key : keys) {
      if (!all.insert(key).second) twice.insert(key);
    }
  }
  EXPECT_EQ(twice, (std::set<std::string>{"cpu_milli", "ephemeral_bytes", "memory_bytes"}));
  EXPECT_EQ(KeysOf<NodeSpec>().count("shares_keep_memory"), 1u);
}

}  // namespace
}  // namespace berth::describe_test
