// SPDX-License-Identifier: Apache-2.0
//
// ShareRule: how others choose the node and the card of a share - their rules in a few lines each,
// not their programs. All of them are given the exact books in both dimensions, and none has a
// limit of pods per card.
//
//   hami-binpack   card: the highest of (its pods + 1) / 10 + its compute + its memory, each with
//                  the pod and as a part of the card; node: the highest of the same sums over the
//                  cards of the node, without the pod.
//                  Project-HAMi/HAMi, pkg/scheduler/policy/gpu_policy.go at 0eec44e5 (ComputeScore,
//                  Less), node_policy.go at 0e2a6e47 (ComputeScore), pkg/scheduler/score.go at
//                  059a8ccd; a card is registered with ten places (deviceSplitCount)
//   hami-spread    the lowest of both
//   gpushare       the card with the least free memory, the first of equals. The node is left to
//                  kube-scheduler there; here it is the one with the best card, which is kinder.
//                  AliyunContainerService/gpushare-scheduler-extender, pkg/cache/nodeinfo.go at
//                  13b7320b (allocateGPUID)
//   volcano        the last card that has room; node: the highest sum of 100 * memory in use, with
//                  the pod, over the cards that it gets (policy binpack), rounded.
//                  volcano-sh/volcano, pkg/scheduler/api/devices/nvidia/vgpu/utils.go at 011c6dc6
//                  (checkNodeGPUSharingPredicateAndScore, GPUScore), pkg/scheduler/plugins/
//                  deviceshare/deviceshare.go at 00a7e680. There the score of the node is computed
//                  and not returned; here it counts, which is kinder
//   koordinator    card and node: the least memory in use with the pod, in whole percent
//                  (LeastAllocated, the default, of gpu-memory and gpu-memory-ratio).
//                  koordinator-sh/koordinator, pkg/scheduler/plugins/deviceshare/scoring.go at
//                  054b96b6 (scoreDevice, scoreNode), device_allocator.go at 0d5f65b9
//                  (defaultAllocateDevices), apis/config/v1/defaults.go at 0a66ffaf
//   koordinator-most  the most memory in use (MostAllocated)
//
// Whole GPUs are idle cards, as the rule ranks them. Where a rule leaves several cards or nodes
// equal, the first is taken (the sources sort unstably or go through a map).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"

namespace berth::replay {

// Immutable: any thread may call it.
class ShareRule {
 public:
  virtual ~ShareRule() = default;

  // Where the pod would go; empty: it fits nowhere.
  [[nodiscard]] std::optional<Placement> Choose(const Snapshot& snapshot,
                                                const RequestShape& shape) const;

 protected:
  // What is in use of one card once the pod has its part of it.
  struct Card {
    int index = 0;
    double compute = 0, memory = 0;  // of what the card has, 0..1
    double free_mib = 0;             // before the pod
    int pods = 0;                    // before the pod
  };
  // The highest is taken. Of `cards` of the node: all, as they are before the pod, for OfNode
  // those that it gets.
  [[nodiscard]] virtual double OfCard(const Card& card) const = 0;
  [[nodiscard]] virtual double OfNode(const std::vector<Card>& given,
                                      const std::vector<Card>& all) const = 0;

 private:
  [[nodiscard]] static std::vector<Card> CardsOf(const Node& node);
};

std::vector<std::string_view> ShareRuleNames();
// Error: kInvalidArgument naming those there are.
Result<std::unique_ptr<const ShareRule>> MakeShareRule(const std::string& name);

}  // namespace berth::replay
