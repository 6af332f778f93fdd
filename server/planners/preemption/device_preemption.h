// SPDX-License-Identifier: Apache-2.0
//
// DevicePreemption: makes room, by evictions, for pods that wait for GPUs of claims.
//
// kube-scheduler evicts nobody where devices are short, and does not ask Berth either. So Berth
// looks at the pods that wait, the most important first. A pod is preempted for if
//   - kube-scheduler has found no node for it, and it fits none as it is in two looks,
//   - it asks for whole GPUs by the name of a resource, or has claims of its own for whole GPUs
//     whose devices Berth chooses,
//   - it is placed alone, by a scheduler that asks this Berth, and its preemptionPolicy allows it,
//   - it is not in the books in any state, and no claim was made for it: then it has its GPUs, or
//     its bind is on the way,
//   - no eviction that kube-scheduler can do itself helps, and nobody is ending whose end suffices.
//     Claims whose pod is gone end too, for kClaimEnds: Kubernetes is about to deallocate them,
//   - kube-scheduler judges nothing of it that Berth does not (ports, volumes, spread, affinity).
// Whom, and where: device_victims.h. The API server carries it out (Eviction), and refuses what
// exceeds a PodDisruptionBudget. However long it takes to answer, a look begins no eviction after
// kMostEvicting, and the next look goes on with the next room. What comes free is the pod's
// (device_rooms.h): first nobody else is let in on the node, and as soon as there is room it is
// planned for the pod, or its claims get their devices.
//
// One thread at a time; the rooms are for all threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/recent.h"
#include "cluster/claims/device_claim.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"

namespace berth {

class DevicePreemption {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(5);  // since the pod was created
  // A pod that fits nowhere is looked at again after this time before anybody is evicted for it.
  static constexpr Duration kStaysShort = std::chrono::seconds(2);
  static constexpr Duration kRetry = std::chrono::seconds(5);     // where no victims were found
  static constexpr Duration kBlocked = std::chrono::seconds(30);  // where none could be evicted
  // How long a node is kept for the pod: while victims end, and once there is room.
  static constexpr Duration kKeepsFor = std::chrono::minutes(5);
  static constexpr Duration kComesWithin = std::chrono::seconds(30);
  static constexpr int kMostPerMinute = 64;  // evictions, of all pods together
  // A leader of the controller that deallocates claims is away for so long at most; claims that
  // nobody uses for longer stay.
  static constexpr Duration kClaimEnds = std::chrono::minutes(1);
  static constexpr Duration kMostEvicting = std::chrono::milliseconds(500);  // of one look
  // Of one look, which has this much time unless its first search takes longer.
  static constexpr Duration kBudget = std::chrono::milliseconds(40);
  static constexpr std::size_t kMostRemembered = 4096;  // pods that were found short

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    const WaitingPods& waiting;
    const Extender& extender;
    const OpenClaims& open;
    DeviceRooms& rooms;
    PodEvictor& evictor;
    PodWaker& waker;
    DecisionSink& sink;
    const Clock& clock;
  };

  explicit DevicePreemption(const Parts& parts) : parts_(parts) {}

  // Call it about once a second where this process leads. Blocks.
  void Look();
  // This process leads no longer: nothing is kept for anybody.
  void LetGo();

  struct Stats {
    std::uint64_t evicted = 0;
    std::uint64_t blocked = 0;  // by a PodDisruptionBudget, when it was tried
    std::uint64_t failed = 0;   // no right, or the API server did not answer
    std::size_t rooms = 0;      // nodes that are kept for a pod now
  };
  // Any thread.
  [[nodiscard]] Stats stats() const;

 private:
  struct Short {
    std::optional<Instant> since = {};  // it fits no node
    Instant next{};                     // look at it
    bool told = false;                  // that its claims take too long to judge
  };

  // What becomes of the rooms that there are.
  void Tend(Instant now);
  // Whether it goes on to evict.
  bool Tend(DeviceRoom& room, Instant now);
  // Whether it is in the books, or a claim was made for it.
  [[nodiscard]] bool HasPlace(const PodId& pod) const;
  // Which claims on these nodes end, as their pods are gone.
  ClaimEnds EndingClaims(const Snapshot& snapshot, Instant now);
  // Plans the pod there, if there is room now.
  [[nodiscard]] bool Hold(const DeviceRoom& room, const PodRequest& pod) const;
  // Whether its own claims have devices, or would get them there now.
  [[nodiscard]] bool HasRoom(const DeviceRoom& room, const PodRequest& pod) const;
  // pause: the pod is not preempted for again before that time is over.
  void Drop(const DeviceRoom& room, Instant now, Duration pause);
  // The pods that may be preempted for, the most important first.
  [[nodiscard]] std::vector<WaitingPod> InNeed(Instant now);
  // Whether it fits no node, and has not for a while.
  // room: of its own claims, as in the next.
  bool IsShort(const Extender::Moment& moment, const PodRequest& pod, ClaimRoom* room, Instant now);
  void MakeRoomFor(const Extender::Moment& moment, const PodRequest& pod, ClaimRoom* room,
                   Instant now);
  // Evicts what is left of the room's victims; tells of them. False: nobody has gone, or may have.
  bool Evict(DeviceRoom& room);
  // Whether so many more are within kMostPerMinute.
  [[nodiscard]] bool MayEvict(std::size_t pods);
  [[nodiscard]] bool IsOutOfTime() const { return evicting_ >= kMostEvicting; }

  const Parts parts_;
  std::atomic<std::uint64_t> evicted_{0}, blocked_{0}, failed_{0};
  Recent<std::string, Short> short_{kMostRemembered};  // by UID
  std::vector<Instant> evictions_;              // of the last minute, tries without answer too
  Duration evicting_{};                         // in this look
  std::string evicted_last_;                    // the node of that room
  std::map<std::string, Instant> without_pod_;  // claims, at most kMostRemembered: since when
};

}  // namespace berth
