// SPDX-License-Identifier: Apache-2.0
//
// The extender protocol, k8s.io/kube-scheduler/extender/v1: its seven message types as bytes.
//
//   ExtenderArgs -> ExtenderFilterResult | HostPriorityList
//   ExtenderPreemptionArgs -> ExtenderPreemptionResult
//   ExtenderBindingArgs -> ExtenderBindingResult
//
// Victims come in two forms: Victims and MetaVictims.
//
// Keys are read in any case and written as Go writes them. Errors (kInvalidArgument) mean "not such
// a message": answer 400. What is wrong with the pod itself is in its refusal.
//
// Decoders may change the text while they work and leave it as it was; what they return may point
// into it. Any thread may call any function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "server/extender/extender.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

// One item of ExtenderArgs.Nodes.
struct NodeItem {
  std::string_view name;
  std::string_view raw;  // its bytes, to be passed through
};

struct ExtenderArgs {
  std::optional<PodRequest> pod;  // empty: Pod was missing or null
  // The nodes asked about, each once, in the order of the request: those that the table has, and
  // the others.
  std::vector<NodeIndex> known;
  std::vector<std::string> unknown;
  bool has_names = false;       // NodeNames was there: it is what counts
  bool has_items = false;       // Nodes was there
  std::vector<NodeItem> items;  // of Nodes
  // Nothing above is filled in: these are NodeNames and Nodes as they were sent; empty: null.
  bool nodes_unread = false;
  std::string_view names_text;
  std::string_view items_text;
};

// Whether to leave the nodes unread, once the pod and its claims are known.
using LeavesNodes = std::function<bool(const ExtenderArgs&)>;

// The nodes are read all the same where their text follows in another form than that in which
// kube-scheduler writes it.
Result<ExtenderArgs> DecodeExtenderArgs(PaddedText& text, const PodRules& rules,
                                        const NodeNameTable& names, const LeavesNodes& leaves = {});

// Gives the memory back with which this thread decoded a large text. What was decoded may point
// into it: call it when the answer is encoded.
void ReleaseDecoder();

// Of what is wrong with a pod, which is said for every node, an answer has so much.
inline constexpr std::size_t kMostReasonBytes = 256;

// Requires: an answer about args.known, args.pod. Where the pod fits nowhere, evictions help on
// nodes whose reason is kUnschedulable.
std::string EncodeFilterResult(const ExtenderArgs& args, const NodeNameTable& names,
                               const FilterAnswer& answer);
// Every node fits. Requires: args.nodes_unread.
std::string EncodeFilterAll(const ExtenderArgs& args);
// The pod fits nowhere this time, for one cause, and evictions help nowhere.
std::string EncodeFilterNowhere(const ExtenderArgs& args, const NodeNameTable& names,
                                std::string_view why);
// A filter answer that fails the whole call.
std::string EncodeFilterError(std::string_view error);

// Requires: priorities.size() == args.known.size(). Nodes that the table does not have get 0.
std::string EncodeHostPriorityList(const ExtenderArgs& args, const NodeNameTable& names,
                                   std::span<const std::uint8_t> priorities);

struct PreemptionArgs {
  PodRequest pod;
  std::vector<NodeVictims> nodes;
};

Result<PreemptionArgs> DecodePreemptionArgs(PaddedText& text, const PodRules& rules);

// A node left out is one that the pod does not get by preemption.
std::string EncodePreemptionResult(std::span<const NodeVictims> nodes);

Result<BindRequest> DecodeBindingArgs(PaddedText& text);

// An empty error means success.
std::string EncodeBindingResult(std::string_view error);

}  // namespace berth::wire
