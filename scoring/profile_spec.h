// SPDX-License-Identifier: Apache-2.0
//
// ProfileSpec: a placement policy as configuration has it: names, numbers and rules. It reads no
// other header: what is read with the settings is read by much.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

// How the GPU of a share is chosen, or the GPUs of several (devices/container_shares.h). Whole GPUs
// are always the idle ones that GpuLinks::Choose takes, given who holds the others, of those that
// the kubelet offers (AlignedGpus); the lowest indices if the node's links are unknown. Where
// kube-scheduler picks them (NodeSpec::by_claims) they are those that it will take.
//
// "First": if the links are known, the GPU that other pods miss least: one in use rather than an
// idle one; among idle ones the one that leaves the rest worth most, else the one with the least
// bandwidth to the idle ones. Then, and if the links are unknown, the lowest index.
enum class DeviceRule {
  kFirst,      // the lowest index that fits, whatever the links
  kTightest,   // the least free that fits; the first among equals
  kBestScore,  // every GPU that fits is offered to the scorers; the first among equals
  kRandom,     // any that fits, drawn by a hash of the node and its free amounts
};

// What happens among nodes of equal score.
enum class TieRule {
  kEqual,  // they stay equal: the scheduler chooses
  kFirst,  // the first by name wins
  // For a pod with GPUs the node with the least free GPU wins, and a wholly idle one only after all
  // others (priority.h). Among nodes that are still equal, and for other pods, as kEqual.
  kFullest,
};

// A policy as configuration has it: names and numbers.
struct ScorerSpec {
  std::string name;
  int weight = 1;  // 1..kMaxScorerWeight
  friend bool operator==(const ScorerSpec&, const ScorerSpec&) = default;
};
constexpr int kMaxScorerWeight = 1000;

// The name under which a profile weighs how near a node is to the pod's group. It depends on other
// nodes, so it is no Scorer: its value comes with the question (Engine::Prioritize).
constexpr std::string_view kDomainLocality = "domain-locality";

struct ProfileSpec {
  std::string name;
  std::vector<ScorerSpec> scorers;  // none: every node scores the same
  DeviceRule devices = DeviceRule::kTightest;
  TieRule ties = TieRule::kEqual;
  // The built-in profile that it was made from: `scorers` has those of that one too. Empty: none.
  std::string extends = {};
  std::vector<std::string> without = {};  // scorers that it leaves out on purpose
  friend bool operator==(const ProfileSpec&, const ProfileSpec&) = default;
};

// The guard of GPU nodes: pods that ask for no GPU stay away from nodes that have some, whose CPU
// and memory are for those that do. Which other node they take is kube-scheduler's to say.
enum class NodeGuard {
  kOff,
  kScore,   // they go there where no other node fits
  kRefuse,  // never, but for those that belong on any node (PodRequest::belongs_on_any_node)
};

}  // namespace berth
