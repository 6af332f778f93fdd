// SPDX-License-Identifier: Apache-2.0
//
// Inquiry: what would become of pods at one moment, for those who ask. It changes nothing and
// remembers nothing.
//
//   const Extender::Moment now = extender.Now();
//   const PodExplanation told = Inquiry(extender, now).Explain(pod);
//
// It takes some milliseconds per thousand nodes: not for threads that answer kube-scheduler. Pods
// without GPUs are judged too, by what Berth knows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/pod_request.h"
#include "scoring/device_victims.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/pool_growth.h"
#include "scoring/explain/what_if.h"
#include "scoring/room/room_nodes.h"
#include "scoring/room/room_units.h"
#include "server/extender/extender.h"

namespace berth {

class Inquiry {
 public:
  // References: they outlive it.
  Inquiry(const Extender& extender, const Extender::Moment& now)
      : extender_(extender), parts_(extender.parts_), now_(now) {}

  // Where the pod is and why, or why it waits.
  [[nodiscard]] PodExplanation Explain(const PodRequest& pod, const PodSaid& said = {}) const;
  // Whom kube-scheduler may evict for the pod's gang; nothing: nobody. Plans it many times.
  [[nodiscard]] std::optional<PreemptionOutlook> GangPreemption(const PodRequest& pod) const;
  // Where these pods would go (what_if.h). held_back, stops, and errors: as WhatIf.
  [[nodiscard]] Result<WhatIfAnswer> WouldPlace(
      std::span<const PodRequest> pods, const NodeEdits& nodes,
      std::function<const char*()> stops = {},
      std::span<const std::string_view> held_back = {}) const;
  // What the next nodes of each pool would take of these pods (pool_growth.h).
  [[nodiscard]] Result<Growth> WouldTake(std::span<const PodRequest> pods, const NodeEdits& nodes,
                                         int most_nodes, std::span<const NodeSpec> at_zero = {},
                                         std::function<const char*()> stops = {}) const;

  struct RoomGoals {
    int idle_nodes = 0;
    std::string model = {};
  };
  struct RoomLimits {
    Duration in_all = std::chrono::seconds(10);
    Duration for_one = std::chrono::seconds(1);               // pod or gang
    std::function<bool(const PodRecord& pod)> may_move = {};  // empty: MoveRules alone say it
  };
  // Which pods to move so that these pods have room, and more (scoring/room/room_units.h).
  [[nodiscard]] RoomUnits WouldMakeRoom(std::span<const PodRequest> pods, const RoomGoals& goals,
                                        const std::function<const char*()>& stops,
                                        const RoomLimits& limits) const;
  // Whether Filter would find a node for the pod among all that there are. room: of its own claims
  // (RoomOfClaims); true too where that cannot be found out.
  [[nodiscard]] bool WouldFit(const PodRequest& pod, ClaimRoom* room = nullptr) const;
  // Of a pod whose own claims have no devices yet (RoomOfClaims): which nodes have what they ask
  // for.
  [[nodiscard]] PodExplanation ExplainClaims(const PodRequest& pod, ClaimRoom& room) const;
  // Of the claims of a pod that asks for no GPUs otherwise. Error: none is to get devices, or why
  // Berth cannot say.
  // made: what its claims ask for, where none is made yet; empty: as the cluster has them.
  [[nodiscard]] Result<ClaimRoom> RoomOfClaims(const PodRequest& pod,
                                               std::vector<DeviceClaim> made = {}) const;
  // Whom to evict for a pod that gets its GPUs by claims (device_victims.h).
  [[nodiscard]] DeviceVictims VictimsForDevices(
      const PodRequest& pod, const std::function<bool(const std::string& node)>& skips,
      ClaimRoom* room, const ClaimEnds& ends = {}) const;

 private:
  // What Filter would say of each node, as long as it returns true. Whether the pod's own claims
  // have devices there is for `room` to say.
  using OnJudged = std::function<bool(NodeIndex node, Reason reason)>;
  void JudgeNodes(const PodRequest& pod, ClaimRoom* room, const OnJudged& judged) const;
  // limits: they outlive the ask, as pods do.
  [[nodiscard]] WhatIfAsk AskAbout(std::span<const PodRequest> pods, const NodeEdits& nodes,
                                   const EvictionLimits& limits,
                                   std::function<const char*()> stops) const;
  // What plans of moves have in common.
  [[nodiscard]] RoomAsk AskForMoves(const EvictionLimits& limits) const;
  [[nodiscard]] std::function<bool(const PodRequest& pod)> StartsWhole() const {
    return [&extender = extender_, policy = now_.policy](const PodRequest& pod) {
      return extender.StartsWithGang(*policy, pod);
    };
  }

  const Extender& extender_;
  const Extender::Parts& parts_;
  const Extender::Moment& now_;
};

// RoomUnitOf: the pods for which one plan of moves is made: a waiting pod, or the members of its
// gang that wait.

// groups: as for LineOf. Without pods that have a place by now.
std::vector<PodRequest> RoomUnitOf(const Extender& extender, const WaitingPods& waiting,
                                   const PodGroups* groups, const Extender::Moment& now,
                                   const WaitingPod& pod);

// The plan for that pod or its gang; nullptr: none was found, or it fits without a move.
const RoomUnit* FindUnit(const RoomUnits& units, const PodRequest& pod);

// "2 moves would let its gang in: berth plan --make-room --for ml/train". A name that a shell would
// not take as it is (a tenant chooses those of gangs) is left out of the command.
std::string RoomSentence(const std::string& name, bool is_gang, std::int64_t moves);

// WaitingLine: the pods that wait for a node now, in the order in which kube-scheduler takes them:
// by priority, then by age.
struct WaitingLine {
  std::vector<PodRequest> pods;
  std::vector<PodRequest> planned = {};  // others, whose places are planned
  std::size_t gated = 0;                 // others, which scheduling gates keep from every scheduler
  std::size_t beyond = 0;                // others, which are further back than `most`
};

// Of pods that were listed before the snapshot was taken (waiting_pods.h), sorted by name. Without
// those that the snapshot has bound or reserved. groups: what their gangs need now; nullptr: as
// they were read.
WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most);

}  // namespace berth
