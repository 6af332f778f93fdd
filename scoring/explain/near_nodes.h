// SPDX-License-Identifier: Apache-2.0
//
// NearNodes: the nodes that come nearest to taking a pod that no node takes, and what each of them
// lacks. Found by asking the same judgement again: about the pod with one of its needs taken back
// (needs.h), about the node once it is ready or its GPUs are well, and about the node without some
// of its pods, those of any priority.
//
// Nearest is where least has to happen, in this order: the pod gives up a wish, one pod ends,
// several end (the fewest first), the pod gives up another need, the node gets well, the pod asks
// for less, the node gets well and pods end. What is kept for others (Question::reservations) is no
// way in. All nodes that are open to the pod (node_access.h) are compared. The others are compared
// only where nothing helps on any of these, and told only where something does, unless no node is
// open.
//
// Pure functions; they leave nothing in the engine's tables.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/judgement.h"
#include "scoring/reason.h"

namespace berth {

// One thing that would let the pod onto the node; nothing else needs to change.
struct WayIn {
  // Of the need (needs.h), "pods_end", "node_ready", "gpus_well", "size", "node_and_pods".
  std::string code;
  std::string text;  // after "fits": "with berth.dev/link: preferred", "when ns/a ends"
  std::vector<std::string> pods = {};  // that end: "namespace/name"
};

struct NearNode {
  NodeIndex node = kNoNode;
  Reason reason = Reason::kFits;
  std::string lack;         // "4 of 8 GPUs idle, needs 4 linked (largest linked set 2)"
  std::vector<WayIn> ways;  // the cheapest first
};

// So many pods are all named that would have to end together; of more the first few.
inline constexpr std::size_t kMostEnding = 4, kEndingNamed = 3;

// So many times at most a node is judged again, which bounds the time on nodes where counting what
// pods hold does not say how near they are (links, MIG devices). For a pod whose group needs a
// topology domain each counts kOfGroup times.
inline constexpr std::size_t kMostJudged = 20'000, kOfGroup = 20;

// At most `most` nodes, the nearest first. reasons: what the judgement said, one per candidate of
// the question.
std::vector<NearNode> NearNodes(const Snapshot& snapshot, const Question& question,
                                std::span<const Reason> reasons, std::size_t most);

}  // namespace berth
