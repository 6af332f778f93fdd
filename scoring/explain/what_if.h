// SPDX-License-Identifier: Apache-2.0
//
// WhatIf: where pods would go that do not exist yet, on the cluster as it is or with other nodes.
//
//   auto told = WhatIf(engine, {.snapshot = state.Current(), .pods = pods, .nodes = edits, ...});
//   told->pods[3].placement;               // node and devices, or...
//   told->whys[told->pods[3].why].text;    // ...why there is none, and the nearest miss
//
// One pod after the other, in kube-scheduler's order: the highest priority first, among equals as
// they are given. Each arrives at its turn, so that the mix learns of it, and is placed by the
// judgement that serves kube-scheduler, with those before it in place. Members of a gang that
// starts whole arrive and are planned together at the turn of the first, all or none. Nothing is
// evicted, and pods of nodes that are removed are not placed again. What kube-scheduler counts on a
// node beside is counted too (other_limits.h).
//
// It works on a Transaction, on a copy of the mix and on an engine apart: neither the state, nor
// the mix, nor the engine's tables change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/node_edits.h"
#include "scoring/victims.h"
#include "scoring/waste/request_mix.h"
#include "topology/domains/domain_tree.h"

namespace berth {

struct WhatIfAsk {
  std::shared_ptr<const Snapshot> snapshot;
  std::span<const PodRequest> pods;  // UIDs unique, none of them in the snapshot
  NodeEdits nodes = {};
  TopologyLevels levels = {};
  // Whether the pod's gang starts whole; empty: no gang does. A gang of unknown size has
  // as many pods as are given.
  std::function<bool(const PodRequest& pod)> starts_whole = {};
  EvictionLimits limits = {};  // as VictimsOn takes them
  NodeGuard guard = NodeGuard::kOff;
  const Reservations* reservations = nullptr;  // as in Question; they outlive the ask
  // Why nobody places the pod, one text per pod: it arrives and gets no place. "": somebody does.
  // Empty: that is so of all.
  std::span<const std::string_view> held_back = {};
  bool explains = true;  // else `whys` have no texts, and the summaries are empty
  // Asked before each pod: why nobody needs the answer any more; nullptr: go on. Empty: go on.
  std::function<const char*()> stops = {};
};

// Why pods that are alike, or those of a gang, have no place.
struct WhyNot {
  std::string text;                    // in a sentence
  std::optional<PodExplanation> told;  // of the first of them, at its turn; empty: not asked
  std::int64_t pods = 0;
};

struct WhatIfPod {
  std::optional<Placement> placement;
  std::size_t why = 0;  // where it has none: index into `whys`
};

struct WhatIfAnswer {
  std::vector<WhatIfPod> pods;  // in the order of the ask
  std::vector<WhyNot> whys;
  std::vector<std::string> wishes;  // "gang ml/llm: group decode: ...", as WishTexts
  std::int64_t fitting = 0;         // how many pods have a place
  // How many of these care which GPUs they get, and the device plugin makes that choice.
  std::int64_t plans_only = 0;
  EditedNodes nodes;  // its snapshot has all of these pods
  std::vector<ModelSummary> before, after;
};

// So many kinds of pods that fit nowhere are explained; the others are counted.
inline constexpr std::size_t kMostWhys = 40;

// An engine apart from the one that decides, for questions that leave nothing there. What it
// has evaluated for one question it knows for the next one on the same nodes.
class EngineApart {
 public:
  // mix: that the engine follows; a copy of it hears of the pods that arrive here. nullptr: nothing
  // is learned, and the profiles stay as they are.
  explicit EngineApart(const Engine& engine, const LearnedMix* mix = nullptr);

  // The pod arrives, as Extender::Arrived has it.
  void Arrived(const PodRequest& pod, const std::shared_ptr<const Snapshot>& snapshot);
  // To be asked about pods of that shape. It has a table per shape, of some 100 bytes a node: there
  // are at most kMostTables.
  Engine& For(const RequestShape& shape);
  [[nodiscard]] Engine& current() const { return *engine_; }

  static constexpr std::size_t kMostTables = 128;

 private:
  const std::shared_ptr<LearnedMix> mix_;  // nullptr: nothing is learned
  const std::shared_ptr<Engine> engine_;
  std::set<RequestShape> shapes_;  // that it has tables for
};

// Error: as Edit; kUnavailable with what stops it. mix: as EngineApart.
Result<WhatIfAnswer> WhatIf(EngineApart& engine, const WhatIfAsk& ask);
Result<WhatIfAnswer> WhatIf(const Engine& engine, const WhatIfAsk& ask,
                            const LearnedMix* mix = nullptr);

}  // namespace berth
