// SPDX-License-Identifier: Apache-2.0
//
// MembersOf: the members of a value, each once, with what they are for and how they are called in a
// file. Whatever has to look at all of a value goes through this list: its size (held_bytes.h), its
// hash (pod_request.cc), likeness (alike.h), bounds (held_bytes.cc), JSON
// (server/wire/file/value_json.h). A list takes its value apart and does not compile when the value
// has another member; test/unit/cluster/describe_test.cc finds one that is left out of a list.
//
// The lists are in the order of the file. Those of nodes are in cluster/node/describe_node.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cluster/values/gang.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

enum class Role : std::uint8_t {
  kKind,      // where it fits, and how well
  kTurn,      // which pods it precedes, and which it may evict
  kGroup,     // the pods with which it is placed
  kLoss,      // what is lost when it is evicted
  kIdentity,  // which one it is
  kShown,     // what others see of it: selectors, records, people
};

// Whether and where a member stands in the file.
enum class Written : std::uint8_t {
  kNever,
  kFirst,   // always, before the rest
  kAlways,  // among the rest
  kIfSet,   // among the rest, unless it is as in a new value
};

inline constexpr std::int64_t kMostAmount = std::numeric_limits<std::int64_t>::max() / 4;

// The range is of numbers. One below it is not known, and is not written.
template <Written written>
struct FileKey {
  const char* name = "";
  std::int64_t low = 0;
  std::int64_t high = kMostAmount;
};
constexpr FileKey<Written::kFirst> AtFront(const char* name, std::int64_t high = kMostAmount) {
  return {name, 0, high};
}
constexpr FileKey<Written::kAlways> InAll(const char* name, std::int64_t high = kMostAmount) {
  return {name, 0, high};
}
constexpr FileKey<Written::kIfSet> WhenSet(const char* name, std::int64_t high = kMostAmount,
                                           std::int64_t low = 0) {
  return {name, low, high};
}

// T: a reference, or a view of what a class keeps.
template <Role as, Written in_file, class T>
struct Member {
  static constexpr Role role = as;
  static constexpr Written written = in_file;
  T value;
  FileKey<in_file> key;
};

template <Role role, class T, Written written = Written::kNever>
constexpr Member<role, written, T> OfRole(T&& value, FileKey<written> key = {}) {
  return {std::forward<T>(value), key};
}
template <class T, Written written = Written::kNever>
constexpr Member<Role::kKind, written, T> OfKind(T&& value, FileKey<written> key = {}) {
  return {std::forward<T>(value), key};
}

// A value of one of these types, to be read or to be written.
template <class V, class... T>
concept OneOf = (std::same_as<std::remove_const_t<V>, T> || ...);

// Values all of whose members decide where a pod fits, and that are no objects of the file.
template <class... T>
constexpr auto AllOfKind(T&... members) {
  return std::tuple(OfKind(members)...);
}

template <OneOf<MigSlices> V>
constexpr auto MembersOf(V& value) {
  auto& [a] = value;
  return AllOfKind(a);
}

template <OneOf<ModelRule, GpuRule, TraitWish, GangRole> V>
constexpr auto MembersOf(V& value) {
  auto& [a, b] = value;
  return AllOfKind(a, b);
}

template <OneOf<GangPart> V>
constexpr auto MembersOf(V& value) {
  auto& [a, b, c] = value;
  return AllOfKind(a, b, c);
}

template <OneOf<OtherResource> V>
constexpr auto MembersOf(V& value) {
  auto& [name, amount] = value;
  return AllOfKind(name, amount);
}

template <OneOf<LabelRequirement> V>
constexpr auto MembersOf(V& value) {
  auto& [key, op, values] = value;
  return std::tuple(OfKind(key, AtFront("key")), OfKind(op, AtFront("operator")),
                    OfKind(values, WhenSet("values")));
}

template <OneOf<NodeSelectorTerm> V>
constexpr auto MembersOf(V& value) {
  auto& [labels, fields] = value;
  return std::tuple(OfKind(labels, WhenSet("labels")), OfKind(fields, WhenSet("fields")));
}

template <OneOf<Toleration> V>
constexpr auto MembersOf(V& value) {
  auto& [key, op, text, effect] = value;
  return std::tuple(OfKind(key, AtFront("key")), OfKind(op, AtFront("operator")),
                    OfKind(text, WhenSet("value")), OfKind(effect, WhenSet("effect")));
}

template <OneOf<NodeConstraints> V>
constexpr auto MembersOf(V& value) {
  auto& [selector, either, tolerations, versions] = value;
  return std::tuple(OfKind(selector, WhenSet("selector")), OfKind(either, WhenSet("either")),
                    OfKind(tolerations, WhenSet("tolerations")),
                    OfKind(versions, WhenSet("versions")));
}

template <OneOf<Neighbours, GangId, GpuStep> V>
constexpr auto MembersOf(V& value) {
  auto& [a, b, c] = value;
  return AllOfKind(a, b, c);
}

template <OneOf<MigProfile, LinkAsk, NodeWishes, GangController> V>
constexpr auto MembersOf(V& value) {
  auto& [a, b, c, d] = value;
  return AllOfKind(a, b, c, d);
}

template <OneOf<MigWant, MigGrant> V>
constexpr auto MembersOf(V& value) {
  auto& [a, b, c, d, e] = value;
  return AllOfKind(a, b, c, d, e);
}

template <OneOf<NoGpu> V>
constexpr auto MembersOf(V&) {
  return std::tuple();
}

template <OneOf<WholeGpus> V>
constexpr auto MembersOf(V& value) {
  auto& [count] = value;
  return std::tuple(OfKind(count, AtFront("gpus", kMaxGpusPerPod)));
}

template <OneOf<GpuShare> V>
constexpr auto MembersOf(V& value) {
  auto& [milli, memory_mib, memory_milli, count] = value;
  return std::tuple(OfKind(milli, AtFront("milli", kMilliPerGpu)),
                    OfKind(memory_mib, AtFront("memory_mib")),
                    OfKind(memory_milli, WhenSet("memory_milli", kMilliPerGpu)),
                    OfKind(count, WhenSet("shares", kMaxGpusPerNode, 1)));
}

// Not the verdicts that it remembers: they come and go while it is kept.
inline auto MembersOf(const ModelRules& value) { return std::tuple(OfKind(value.rules())); }

template <OneOf<RequestShape> V>
constexpr auto MembersOf(V& value) {
  auto& [cpu_milli, memory_bytes, gpus, models, ephemeral_bytes, links, gpu_resource, isolation,
         min_capability, min_gpu_memory_mib, share_agent, one_per_container, share_mode,
         model_rules, gpu_rules, spread, workload, nodes, neighbours, beside_nic, gpu_steps] =
      value;
  return std::tuple(
      OfKind(cpu_milli, AtFront("cpu_milli")), OfKind(memory_bytes, AtFront("memory_bytes")),
      OfKind(gpus, AtFront("ask")), OfKind(models, AtFront("models")),
      OfKind(ephemeral_bytes, WhenSet("ephemeral_bytes")),
      OfKind(gpu_resource, WhenSet("gpu_resource")), OfKind(share_agent, WhenSet("share_agent")),
      OfKind(links), OfKind(isolation), OfKind(min_capability), OfKind(min_gpu_memory_mib),
      OfKind(one_per_container), OfKind(share_mode), OfKind(model_rules), OfKind(gpu_rules),
      OfKind(spread), OfKind(workload), OfKind(nodes), OfKind(neighbours), OfKind(beside_nic),
      OfKind(gpu_steps));
}

template <OneOf<ContainerAsk> V>
constexpr auto MembersOf(V& value) {
  auto& [name, gpus, ends_first, index] = value;
  return std::tuple(OfRole<Role::kIdentity>(name, AtFront("name")), OfKind(gpus, AtFront("ask")),
                    OfKind(ends_first, AtFront("ends_first")), OfRole<Role::kIdentity>(index));
}

template <OneOf<PodId> V>
constexpr auto MembersOf(V& value) {
  auto& [uid, namespace_name, name] = value;
  return std::tuple(OfRole<Role::kIdentity>(uid, AtFront("uid")),
                    OfRole<Role::kIdentity>(namespace_name, AtFront("namespace")),
                    OfRole<Role::kIdentity>(name, AtFront("name")));
}

template <OneOf<Gang> V>
constexpr auto MembersOf(V& value) {
  auto& [id, minimum, total, object, hold, has_roles, roles, parts, controller, followers, by] =
      value;
  return AllOfKind(id, minimum, total, object, hold, has_roles, roles, parts, controller, followers,
                   by);
}

template <OneOf<Taint> V>
constexpr auto MembersOf(V& value) {
  auto& [key, text, effect] = value;
  return std::tuple(OfKind(key, AtFront("key")), OfKind(text, AtFront("value")),
                    OfKind(effect, AtFront("effect")));
}

inline constexpr std::int64_t kMostPriority = std::numeric_limits<int>::max();

template <OneOf<PodRequest> V>
constexpr auto MembersOf(V& value) {
  auto& [id, shape, containers, container_count, refusal, priority, may_preempt, gang, scheduler,
         domain, constraints, labels, init_container_count, belongs_on_any_node, classes,
         device_class, checkpointed, keep, own_to_scheduler, role, leads, others, claims,
         made_claim, mobility, deletion_cost, grace_seconds, expected_seconds, deadline_seconds,
         controller, series] = value;
  return std::tuple(
      OfRole<Role::kIdentity>(id), OfRole<Role::kIdentity>(claims),
      OfRole<Role::kIdentity>(made_claim), OfKind(shape), OfKind(containers, AtFront("containers")),
      OfKind(refusal), OfKind(constraints, WhenSet("constraints")), OfKind(belongs_on_any_node),
      OfKind(device_class), OfKind(others, WhenSet("others")),
      OfRole<Role::kTurn>(priority, WhenSet("priority", kMostPriority, -kMostPriority - 1)),
      OfRole<Role::kTurn>(may_preempt), OfRole<Role::kTurn>(own_to_scheduler),
      OfRole<Role::kGroup>(gang, WhenSet("gang")), OfRole<Role::kGroup>(scheduler),
      OfRole<Role::kGroup>(domain), OfRole<Role::kGroup>(role), OfRole<Role::kGroup>(leads),
      OfRole<Role::kLoss>(checkpointed), OfRole<Role::kLoss>(keep, WhenSet("keep")),
      OfRole<Role::kLoss>(mobility, WhenSet("mobility")),
      OfRole<Role::kLoss>(deletion_cost,
                          WhenSet("deletion_cost", kMostPriority, -kMostPriority - 1)),
      OfRole<Role::kLoss>(grace_seconds, WhenSet("grace_seconds", kMostGraceSeconds)),
      OfRole<Role::kLoss>(expected_seconds, WhenSet("expected_seconds", kMostRunSeconds)),
      OfRole<Role::kLoss>(deadline_seconds, WhenSet("deadline_seconds", kMostRunSeconds)),
      OfRole<Role::kIdentity>(controller), OfRole<Role::kIdentity>(series),
      OfRole<Role::kShown>(labels, WhenSet("labels")), OfRole<Role::kShown>(classes),
      OfRole<Role::kShown>(container_count), OfRole<Role::kShown>(init_container_count));
}

template <OneOf<DeviceGrant> V>
constexpr auto MembersOf(V& value) {
  auto& [gpu, milli, memory_mib, uuid, memory_milli, containers] = value;
  return std::tuple(OfKind(milli, AtFront("milli", kMilliPerGpu)),
                    OfKind(memory_mib, AtFront("memory_mib")),
                    OfKind(gpu, InAll("gpu", kMaxGpusPerNode - 1)), OfKind(uuid, WhenSet("uuid")),
                    OfKind(memory_milli), OfKind(containers));
}

template <OneOf<Placement> V>
constexpr auto MembersOf(V& value) {
  auto& [node, cpu_milli, memory_bytes, grants, mig, places, ephemeral_bytes, agent, places_on] =
      value;
  return std::tuple(OfKind(node, AtFront("node")), OfKind(cpu_milli, AtFront("cpu_milli")),
                    OfKind(memory_bytes, AtFront("memory_bytes")), OfKind(grants, InAll("grants")),
                    OfKind(ephemeral_bytes, WhenSet("ephemeral_bytes")),
                    OfKind(mig, WhenSet("mig")), OfKind(places, WhenSet("places", kMaxGpuPlaces)),
                    OfKind(places_on, WhenSet("places_on", kMaxGpusPerNode - 1)), OfKind(agent));
}

template <OneOf<RefusedAsk> V>
constexpr auto MembersOf(V& value) {
  auto& [gpus, containers, cpu_milli, memory_bytes, ephemeral_bytes, others] = value;
  return std::tuple(
      OfKind(gpus, AtFront("ask")), OfKind(containers, AtFront("containers")),
      OfKind(cpu_milli, AtFront("cpu_milli")), OfKind(memory_bytes, AtFront("memory_bytes")),
      OfKind(ephemeral_bytes, WhenSet("ephemeral_bytes")), OfKind(others, WhenSet("others")));
}

template <class T>
concept Described = requires(T& value) {
  MembersOf(value);
};

// visit: called with each member.
template <class V, class Visit>
constexpr void ForEachMember(V& value, Visit visit) {
  std::apply([&visit](const auto&... member) { (visit(member), ...); }, MembersOf(value));
}

// visit: called with each member of the one and the same one of the other.
template <class A, class B, class Visit>
constexpr void ForEachMemberOf(A& one, B& other, Visit visit) {
  std::apply(
      [&](const auto&... a) {
        std::apply([&](const auto&... b) { (visit(a, b), ...); }, MembersOf(other));
      },
      MembersOf(one));
}

}  // namespace berth
